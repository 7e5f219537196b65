"""What the Spark session starts with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.java import find_java
from connectors.scratch import claim_scratch
from streaming import spark_home
from streaming.session import archive_of_spark, make_session
from streaming.settings import SessionSettings
from tests.support.waiting import wait_for

pytestmark = pytest.mark.spark


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the home is made; the environment names no other."""
    monkeypatch.setattr(spark_home, "_HOME", tmp_path / "home")
    # Set first, so that the environment is as before in the end.
    monkeypatch.setenv("SPARK_HOME", "")
    monkeypatch.delenv("SPARK_HOME")
    return tmp_path / "home"


def test_home_is_used_once_it_is_made(home: Path) -> None:
    """It has Spark's programs and jars, and no zip of pyspark."""
    spark_home.use_home()
    assert "SPARK_HOME" not in os.environ
    assert spark_home.make_home() == spark_home.make_home() == home
    spark_home.use_home()
    assert os.environ["SPARK_HOME"] == str(home)
    assert (home / "bin" / "spark-submit").is_file()
    assert list((home / "jars").glob("spark-core_*.jar"))
    assert not (home / "python").exists()


def test_home_that_the_user_names_is_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have the settings of a cluster."""
    spark_home.make_home()
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    spark_home.use_home()
    assert os.environ["SPARK_HOME"] == "/opt/spark"


def test_home_of_a_removed_environment_is_made_anew(home: Path) -> None:
    """Its links led nowhere."""
    home.mkdir()
    (home / "jars").symlink_to(home / "gone")
    spark_home.make_home()
    assert (home / "jars").is_dir()


def test_workers_of_a_prepared_environment_import_the_installed_pyspark(
    spark: SparkSession,
) -> None:
    """Otherwise they import the zip of Spark's home."""

    def place(rows: Iterator[object]) -> Iterator[str]:
        import pyspark

        yield pyspark.__file__

    (found,) = spark.sparkContext.parallelize([0], 1).mapPartitions(place).collect()
    prepared = Path(spark_home.PREPARED, "spark-home").exists()
    assert ("pyspark.zip" in found) is not prepared


def test_worker_begins_with_its_modules_loaded_and_passed_over_by_the_collector(
    spark: SparkSession,
) -> None:
    """Otherwise it imports for a second, and walks their objects after every task."""

    def state(rows: Iterator[object]) -> Iterator[tuple[int, bool]]:
        import gc
        import sys

        loaded = {"pandas", "pyarrow", "streaming.fold", "streaming.source"}
        yield gc.get_freeze_count(), loaded <= sys.modules.keys()

    one = spark.sparkContext.parallelize([0], 1)
    ((frozen, loaded),) = one.mapPartitions(state).collect()
    assert frozen > 10_000
    assert loaded


def test_daemon_of_workers_has_one_thread() -> None:
    """A fork would lack the others, whose locks stay taken for ever."""
    code = "import os, streaming.worker_daemon; print(os.listdir('/proc/self/task'))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.count("'") == 2


def test_state_has_a_partition_for_each_core_unless_another_number_is_given(
    spark: SparkSession,
) -> None:
    """Each partition costs time in every batch."""
    assert make_session(SessionSettings("local[2]", 5)) is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "5"
    make_session(SessionSettings("local[2]"))
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_spark_searches_no_packages_for_data_sources(spark: SparkSession) -> None:
    """The search starts two Python processes when a query is started."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no public way to it
    sources = jvm.org.apache.spark.sql.execution.datasources
    manager = getattr(getattr(sources, "DataSourceManager$"), "MODULE$")
    assert manager.dataSourceBuilders().isDefined()


def test_files_of_a_checkpoint_are_renamed_without_another_program(
    spark: SparkSession,
) -> None:
    """Spark's default runs `readlink` four times for each file."""
    manager = spark.conf.get("spark.sql.streaming.checkpointFileManagerClass")
    assert manager is not None
    assert manager.endswith(".FileSystemBasedCheckpointFileManager")


def test_session_remembers_few_jobs_and_queries(spark: SparkSession) -> None:
    """Spark remembers a thousand of each, for a page that is off: 100 MB and more."""
    for _ in range(40):
        spark.range(1).collect()
    store = spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - no public way
    queries = spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001

    # Spark removes older ones in a thread of its own.
    def are_few() -> bool:
        return store.jobsList(None).size() < 30 > queries.executionsCount()

    wait_for(are_few, 20)


def test_session_uses_the_archive_of_a_prepared_environment(
    spark: SparkSession,
) -> None:
    """Its JVM was started with the option."""
    options = spark.conf.get("spark.driver.extraJavaOptions") or ""
    archive = archive_of_spark(find_java())
    assert (str(archive.path) in options) is archive.path.exists()


_SESSION = """
import sys
from streaming.session import SessionSettings, make_session

spark = make_session(SessionSettings("local[1]", shuffle_partitions=1))
spark.range(4).groupBy("id").count().collect()
spark.sparkContext._jvm.org.rocksdb.RocksDB.loadLibrary()
print("ready", flush=True)
sys.stdin.read()
"""


def test_killed_session_leaves_files_only_where_the_next_start_removes_them(
    tmp_path: Path,
) -> None:
    """Unpacked libraries and Spark's own directories, 15 MB and more each time."""
    with subprocess.Popen(
        [sys.executable, "-c", _SESSION],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    (root,) = tmp_path.iterdir()
    (left,) = root.iterdir()
    assert any(one.suffix == ".so" for one in left.iterdir())
    assert any(one.name.startswith("blockmgr-") for one in left.iterdir())

    def is_removed() -> bool:
        # Not before the JVM has completely ended.
        return claim_scratch(root).exists() and not left.exists()

    wait_for(is_removed)
