"""Sends the code to a cluster's executors, and checks that they can run tasks.

All executors must share the checkpoint. The checks run before the query starts. Without
them, a task on an unsuitable executor would fail four times with an unclear error of
Spark, or write state to a disk that is not shared.
"""

from __future__ import annotations

import logging
import marshal
import os
import re
import socket
import sys
import time
import uuid
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import connectors
import sds_core
import streaming
from connectors.kafka.settings import KafkaSettings
from sds_core import compiled
from streaming.failure import JobFailed, cause_of, hand_over
from streaming.master import is_local

_log = logging.getLogger("sds-monitor")

_PACKAGES = (connectors, sds_core, streaming)
_WAIT = "spark.scheduler.maxRegisteredResourcesWaitingTime"
_UNPACKED = "sds-monitor"
_KAFKA_S = 30.0
"""Maximum time that an executor waits for Kafka, seconds.

The driver has already reached Kafka.
"""

_PLAIN = re.compile(r"[\w/.+=@,-]+", re.ASCII)
"""Matches paths without characters that Spark's readers interpret or escape."""


class _Problem(NamedTuple):
    """Why an executor cannot run tasks; `unreachable` if it cannot reach Kafka."""

    text: str
    unreachable: bool = False


class _Fit(NamedTuple):
    host: str
    is_compiled: bool


def has_executors(spark: SparkSession) -> bool:
    """Whether tasks run on a cluster."""
    master: Any = spark.sparkContext.master
    return not is_local(master)


def location(spark: SparkSession, checkpoint: Path) -> str:
    """Return a checkpoint's path for Spark; on a cluster, as a ``file://`` URL."""
    return f"file://{checkpoint}" if has_executors(spark) else str(checkpoint)


def send_code(context: SparkContext, directory: Path) -> None:
    """Make Spark send the modules and the compiled rules to every executor.

    The modules are sent as a zip. Python cannot load compiled modules from a zip, so
    Spark unpacks it. If an executor has another Python version or platform than the
    driver, it runs the rules interpreted, not compiled. The zip is written to
    `directory`, which must exist as long as the context is used.
    """
    archive = directory / f"{_UNPACKED}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as files:
        for package in _PACKAGES:
            root = Path(package.__path__[0])
            for path in sorted(root.rglob("*.py")):
                _add_module(files, path, path.relative_to(root.parent))
        if compiled.is_compiled():
            core = Path(compiled.directory())
            root = core.parents[2]
            for path in sorted(core.iterdir()):
                files.write(path, path.relative_to(root))
    context.addArchive(str(archive))
    # Spark's Python workers search for modules in the places in `_python_includes`. An
    # unpacked archive can be added only here: settings accept only zips and single
    # files.
    includes: Any = context._python_includes  # noqa: SLF001 - see above
    includes.append(archive.name)


def _add_module(files: zipfile.ZipFile, path: Path, name: Path) -> None:
    source = path.read_bytes()
    files.writestr(str(name), source)
    code = SourceFileLoader(name.stem, str(path)).get_code(name.stem)
    # By default, a .pyc file has the modification time of its source, and is used only
    # if this time is correct. Unpacking changes the source's time, so this .pyc file
    # has a hash of the source instead, which Python does not check.
    head = MAGIC_NUMBER + (1).to_bytes(4, "little") + source_hash(source)
    cached = f"{name.stem}.{sys.implementation.cache_tag}.pyc"
    files.writestr(
        str(name.parent / "__pycache__" / cached), head + marshal.dumps(code)
    )


def check_executors(
    spark: SparkSession, kafka: KafkaSettings, checkpoint: Path
) -> None:
    """Check that executors exist, have the code, and can use Kafka and the checkpoint.

    Executors that join after this check are not checked. The caller must have locked
    the checkpoint.

    Raises:
        JobFailed: No executor exists, or an executor cannot run tasks.
    """
    if not has_executors(spark):
        return
    if not _PLAIN.fullmatch(str(checkpoint)):
        message = (
            f"checkpoint {checkpoint} has characters that Spark does not accept on a "
            "cluster: use only letters, digits and /._+=@,- in --checkpoint"
        )
        raise JobFailed(message, final=True)
    context = spark.sparkContext
    wait_for_executor(context)
    marker = checkpoint / f".probe-{uuid.uuid4()}"
    marker.touch()
    probe = _probe_of(replace(kafka, timeout_s=min(kafka.timeout_s, _KAFKA_S)), marker)
    # Two tasks for each core, so that every executor gets a task.
    tasks = 2 * context.defaultParallelism
    try:
        found = context.parallelize(range(tasks), tasks).mapPartitions(probe).collect()
    except (Py4JJavaError, PySparkException) as error:
        python = os.environ["PYSPARK_PYTHON"]
        message = (
            f"executors cannot run the job with Python {python} ({_cause(error)}): on "
            "each machine with executors, install this Python and the dependencies "
            "of sds-monitor, or set PYSPARK_PYTHON to another Python "
            "(docs/scaling.md)"
        )
        raise JobFailed(message, final=True) from error
    finally:
        marker.unlink(missing_ok=True)
    for one in found:
        if isinstance(one, _Problem):
            raise JobFailed(one.text, one.unreachable, final=not one.unreachable)
    hosts = {host for host, is_compiled in found if not is_compiled}
    if hosts and compiled.is_compiled():
        _log.warning(
            "these executors run interpreted rules instead of compiled ones, because "
            "their Python version or platform differs from the driver's: %s",
            ", ".join(sorted(hosts)),
        )


def _cause(error: Exception) -> str:
    # `cause_of` returns the text of the innermost error, which does not name the
    # program.
    missing = re.search(r'Cannot run program "[^"\n]*"', str(error))
    return missing[0] if missing else cause_of(error)


def wait_for_executor(context: SparkContext) -> None:
    """Wait until a cluster provides an executor.

    Raises:
        JobFailed: The cluster provides no executor, or has ended the application.
    """
    scala: Any = context._jsc.sc()  # noqa: SLF001 - Python has no other name for it
    patience_s = scala.conf().getTimeAsSeconds(_WAIT, "30s")
    give_up_s = time.monotonic() + patience_s
    # The status counts the driver as an executor, so a count of 2 means one executor.
    while scala.isStopped() or scala.getExecutorMemoryStatus().size() < 2:
        if scala.isStopped():
            message = (
                f"{context.master} has ended the application: see the master's log"
            )
            raise JobFailed(message, unreachable=True)
        if time.monotonic() >= give_up_s:
            message = (
                f"{context.master} has provided no executor within {patience_s} s "
                f"({_WAIT}): check that a worker has enough free memory and cores "
                "(spark.executor.memory, spark.executor.cores)"
            )
            raise JobFailed(message, unreachable=True)
        time.sleep(0.2)


def _probe_of(
    kafka: KafkaSettings, marker: Path
) -> Callable[[Iterable[int]], Iterable[_Problem | _Fit]]:
    @hand_over
    def probe(_: Iterable[int]) -> Iterable[_Problem | _Fit]:
        # These modules import everything that the job's tasks need, so that a missing
        # dependency is found here.
        import_module("streaming.fold")
        import_module("streaming.source")
        host = socket.gethostname()
        problem = _find_unshared(marker, host) or _find_unreachable(kafka, host)
        yield problem or _Fit(host, compiled.is_compiled())

    return probe


def _find_unshared(marker: Path, host: str) -> _Problem | None:
    checkpoint = marker.parent
    if not marker.exists():
        return _Problem(
            f"checkpoint {checkpoint} is not shared: executor {host} does not see it; "
            "use a directory that driver and executors mount at the same path as "
            "--checkpoint"
        )
    own = marker.with_name(f"{marker.name}-{host}-{os.getpid()}")
    try:
        own.touch()
        own.unlink()
    except OSError as error:
        return _Problem(
            f"executor {host} cannot write to checkpoint {checkpoint} "
            f"({error.strerror}): let the user of the executors write there"
        )
    return None


def _find_unreachable(kafka: KafkaSettings, host: str) -> _Problem | None:
    from connectors.kafka.offsets import TopicOffsets

    try:
        with closing(TopicOffsets(kafka)) as offsets:
            offsets.partitions()
    except Exception as error:
        text = f"executor {host}: {error}"
        return _Problem(text.partition("\n")[0], isinstance(error, ConnectionError))
    return None
