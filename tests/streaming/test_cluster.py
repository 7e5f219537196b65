"""The monitor on a real cluster of Spark: a master and two workers on loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from compiler.build import build
from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from connectors.sweep_results import TABLE
from sds_core.compiled import SWITCH, describe
from tests.support.chaos.batches import wait_for_batch
from tests.support.golden.checkpoints import HALF
from tests.support.identities import assert_identities
from tests.support.planning.sweeps import TEXT, killed_after_a_run, simulated_here
from tests.support.streaming.cluster import (
    Cluster,
    spark_submit,
    standalone_cluster,
)
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    # An idle machine needs a minute for all of them.
    pytest.mark.timeout(1_200),
]

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "streaming.cli")
LOCAL: Mapping[str, str] = MappingProxyType({})
UNSHARED = "/proc/self/cwd"
"""A directory that is another one in every process: its working directory."""
LONG_S = 500
TO_THE_END = "--until-caught-up"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for all tests of the module."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def recorded(module_topic: Callable[..., KafkaSettings]) -> KafkaSettings:
    """A topic that holds half of the recording."""
    records = load_recording()
    kafka = module_topic(partitions=0)
    ensure_frames_topic(kafka, partitions_of(records))
    write(records[:HALF], kafka)
    return kafka


@contextmanager
def started(
    program: tuple[str, ...],
    kafka: KafkaSettings,
    directory: Path,
    *flags: str,
    environment: Mapping[str, str] = LOCAL,
) -> Iterator[subprocess.Popen[str]]:
    """``run`` in the background.

    Args:
        program: Its command line up to the command.
        kafka: Cluster and topic.
        directory: Has the checkpoint, and gets the report.
        flags: Further options.
        environment: Further variables.
    """
    options = {
        "--bootstrap": kafka.bootstrap,
        "--topic": kafka.topic,
        "--checkpoint": str(directory / "checkpoint"),
        "--report": str(directory / "report.json"),
        "--metrics-port": "0",
        "--shuffle-partitions": "2",
    }
    arguments = [word for option in options.items() for word in option]
    flags = (*flags, "--report-detail", "--no-history-topics")
    with subprocess.Popen(
        [*program, "run", *arguments, *flags],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def report_of(process: subprocess.Popen[str], directory: Path) -> dict[str, Any]:
    """The report of a job that ends well."""
    output, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 0, errors
    # spark-submit writes to its output what the program writes to standard error.
    assert f" rules: {describe()}\n" in output + errors
    report: dict[str, Any] = json.loads((directory / "report.json").read_text())
    assert_identities(report)
    del report["generated_at"]
    return report


def refusal(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and error of a job that cannot start: one line, and nothing of Spark.

    But for what the JVM says before it has read Spark's settings.
    """
    _, errors = process.communicate(timeout=LONG_S)
    lines = [line for line in errors.splitlines() if "incubator modules" not in line]
    told = [line for line in lines if not line[:2].isdigit()]
    assert len(told) == 1, errors
    return process.returncode, told[0]


@pytest.mark.long
def test_cluster_reports_the_same_as_one_machine_also_if_an_executor_is_killed(
    cluster: Cluster, recorded: KafkaSettings, tmp_path: Path
) -> None:
    """By ``spark-submit``, then by ``run --master`` on the same checkpoint.

    The executors see neither our modules nor the driver's temporary files.
    """
    shared, alone = tmp_path / "shared", tmp_path / "alone"
    for directory in (shared, alone, shared / "tmp"):
        directory.mkdir()
    program = (*spark_submit(cluster), str(ROOT / "deploy" / "submit.py"))
    with started(
        program, recorded, shared, TO_THE_END, environment=cluster.environment
    ) as submitted:
        report_of(submitted, shared)
    write(load_recording()[HALF:], recorded)
    # Batches so small that there is one to kill an executor in.
    flags = (TO_THE_END, "--master", cluster.master, "--max-batch-records", "250")
    hidden = {"TMPDIR": str(Path(UNSHARED, "tmp"))}
    with started(
        COMMAND, recorded, shared, *flags, environment=cluster.environment | hidden
    ) as process:

        def is_alive() -> bool:
            assert process.poll() is None, process.communicate()[1]
            return True

        wait_for_batch(shared / "checkpoint", 2, is_alive)
        first, *_ = wait_for(cluster.executors)
        first.kill()
        found = report_of(process, shared)
    with started(COMMAND, recorded, alone, TO_THE_END) as process:
        assert report_of(process, alone) == found
    assert found["totals"]["messages"] == 282


@pytest.mark.long
def test_sweep_has_the_same_table_on_a_cluster_as_in_one_process(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Byte by byte; driver and executors share no directory."""
    (tmp_path / "grid.toml").write_text(TEXT)
    done = subprocess.run(
        [
            *(*COMMAND, "plan", "sweep", "grid.toml"),
            *("--out", "out", "--master", cluster.master),
        ],
        env={**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONG_S,
    )
    assert done.returncode == 0, done.stderr
    simulated_here(tmp_path / "here")
    expected = (tmp_path / "here" / TABLE).read_bytes()
    assert (tmp_path / "out" / TABLE).read_bytes() == expected


@pytest.mark.long
def test_killed_sweep_of_200_runs_has_the_same_table_on_a_cluster(
    cluster: Cluster, tmp_path: Path
) -> None:
    """It continues with the runs that it lacks."""
    text = TEXT.replace("seeds = 2", "seeds = 50")
    (tmp_path / "grid.toml").write_text(text)
    command = [
        *(*COMMAND, "plan", "sweep", "grid.toml"),
        *("--out", "out", "--master", cluster.master),
    ]
    environment = {**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT)}
    journal = tmp_path / "out" / "runs.jsonl"
    first = killed_after_a_run(command, tmp_path, environment, "out")
    assert 0 < first.count(b"\n") < 200
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert journal.read_bytes().count(b"\n") == 200
    simulated_here(tmp_path / "here", grid=tomllib.loads(text))
    expected = (tmp_path / "here" / TABLE).read_bytes()
    assert (tmp_path / "out" / TABLE).read_bytes() == expected


_CHECKS = """
import json, os, sys
from pathlib import Path
from connectors.kafka.settings import KafkaSettings
from streaming.executors import check_executors
from streaming.failure import JobFailed
from streaming.session import make_session
from streaming.settings import SessionSettings

master, bootstrap, topic, empty_python, shared = sys.argv[1:]
spark = make_session(SessionSettings(master, shuffle_partitions=1))
kafka = KafkaSettings(bootstrap, topic)
nobody = KafkaSettings("127.0.0.1:1", topic, timeout_s=1)
normal = os.environ["PYSPARK_PYTHON"]
for directory, cluster, python in (
    (shared, kafka, normal),
    ("/proc/self/cwd/state", kafka, normal),
    (shared + "/a b", kafka, normal),
    (shared, nobody, normal),
    (shared, kafka, "/nowhere/python"),
    (shared, kafka, empty_python),
):
    Path(directory).mkdir(exist_ok=True)
    os.environ["PYSPARK_PYTHON"] = spark.sparkContext.pythonExec = python
    try:
        check_executors(spark, cluster, Path(directory))
        print("fine", flush=True)
    except JobFailed as error:
        print(json.dumps([str(error), error.unreachable, error.final]), flush=True)
assert list(Path(shared).iterdir()) == [Path(shared, "a b")]
spark.stop()
"""


@pytest.mark.long
def test_executors_that_cannot_work_are_found_before_the_query_starts(
    cluster: Cluster, recorded: KafkaSettings, tmp_path: Path
) -> None:
    """Each problem is told in one line, which says what to do."""
    empty, shared = tmp_path / "empty", tmp_path / "shared"
    venv.create(empty, symlinks=True)
    shared.mkdir()
    arguments = (cluster.master, recorded.bootstrap, recorded.topic)
    done = subprocess.run(
        [sys.executable, "-c", _CHECKS, *arguments, empty / "bin" / "python", shared],
        env={**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONG_S,
    )
    assert done.returncode == 0, done.stderr
    fine, *problems = done.stdout.splitlines()
    assert fine == "fine"
    texts = []
    for text, unreachable, final in map(json.loads, problems):
        assert len(text.splitlines()) == 1
        assert final is not unreachable
        texts.append(text)
    host = socket.gethostname()
    unshared, odd, unreachable, missing, empty_one = texts
    assert unshared.startswith(
        f"checkpoint {UNSHARED}/state is not shared: executor {host} does not see it; "
    )
    assert f"checkpoint {shared}/a b has characters" in odd
    assert f"executor {host}: Kafka at 127.0.0.1:1 cannot be reached" in unreachable
    assert 'Cannot run program "/nowhere/python"' in missing
    assert "No module named 'msgspec'" in empty_one
    assert "PYSPARK_PYTHON" in missing
    assert "PYSPARK_PYTHON" in empty_one


_FORMS = """
import json, sys
from pathlib import Path
from connectors.kafka.settings import KafkaSettings
from streaming.cli.log import start_log
from streaming.executors import check_executors
from streaming.session import make_session
from streaming.settings import SessionSettings

def form_and_place(_):
    from sds_core import compiled
    from sds_core.observer.sds import digest
    yield compiled.is_compiled(), digest.__spec__.origin

master, bootstrap, topic, shared = sys.argv[1:]
start_log()
spark = make_session(SessionSettings(master, shuffle_partitions=1))
check_executors(spark, KafkaSettings(bootstrap, topic), Path(shared))
tasks = spark.sparkContext.parallelize(range(4), 4)
print(json.dumps(tasks.mapPartitions(form_and_place).collect()))
spark.stop()
"""


@pytest.mark.long
@pytest.mark.parametrize("form", ["compiled", "interpreted"])
def test_executors_run_the_rules_in_the_form_that_they_can_load(
    cluster: Cluster, recorded: KafkaSettings, tmp_path: Path, form: str
) -> None:
    """The driver's compiled ones, unpacked there, or else the sources, which is said.

    A variable stands for an executor of another Python or machine.
    """
    build(ROOT)
    environment = cluster.environment
    if form == "interpreted":
        submit = f"--conf spark.executorEnv.{SWITCH}={form} pyspark-shell"
        environment |= {"PYSPARK_SUBMIT_ARGS": submit}
    done = subprocess.run(
        [
            *(sys.executable, "-c", _FORMS, cluster.master),
            *(recorded.bootstrap, recorded.topic, tmp_path),
        ],
        env={
            **{k: v for k, v in os.environ.items() if k != SWITCH},
            **environment,
            "PYTHONPATH": str(ROOT),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LONG_S,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {is_compiled for is_compiled, _ in found} == {form == "compiled"}
    for _, place in found:
        assert not Path(place).is_relative_to(ROOT)
        assert Path(place).suffix == (".so" if form == "compiled" else ".py")
    said = (
        "these executors run interpreted rules instead of compiled ones, because "
        "their Python or machine"
    )
    assert (said in done.stderr) == (form == "interpreted")


@pytest.mark.long
def test_master_without_resources_ends_the_job_in_one_line(
    cluster: Cluster, recorded: KafkaSettings, tmp_path: Path
) -> None:
    """Spark itself would wait for ever."""
    flags = ("--master", cluster.master)
    submit = (
        "--conf spark.executor.memory=900g "
        "--conf spark.scheduler.maxRegisteredResourcesWaitingTime=1s pyspark-shell"
    )
    environment = cluster.environment | {"PYSPARK_SUBMIT_ARGS": submit}
    with started(
        COMMAND, recorded, tmp_path, *flags, environment=environment
    ) as process:
        code, error = refusal(process)
    assert code == 3
    assert f"{cluster.master} has provided no executor within 1 s" in error
    assert "spark.executor.memory" in error


def test_unreachable_master_ends_the_job_in_one_line(
    recorded: KafkaSettings, tmp_path: Path
) -> None:
    """At once, before Spark starts."""
    with started(
        COMMAND, recorded, tmp_path, "--master", "spark://127.0.0.1:1"
    ) as process:
        code, error = refusal(process)
    assert code == 3
    assert (
        "no Spark master answers at spark://127.0.0.1:1 (Connection refused)" in error
    )


@pytest.mark.long
def test_application_that_the_master_ends_ends_the_job_with_a_line_that_says_so(
    cluster: Cluster, recorded: KafkaSettings, tmp_path: Path
) -> None:
    """Also if no record comes, so that the query has no work to fail with.

    Spark's threads, which cannot report to the master any more, may say more before.
    """
    flags = ("--master", cluster.master)
    with started(
        COMMAND, recorded, tmp_path, *flags, environment=cluster.environment
    ) as process:
        wait_for(lambda: (tmp_path / "checkpoint" / "commits" / "0").exists(), LONG_S)
        assert cluster.end_applications() == 1
        _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 4
    # Spark's JVM may write to the same place a moment longer.
    *_, last = (line for line in errors.splitlines() if "sds-monitor: " in line)
    assert (
        "the Spark master has ended the application: find the reason on the "
        "master's page" in last
    )
    assert "Traceback" not in errors
