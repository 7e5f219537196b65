"""Executors of a cluster: they receive the modules, and must share the checkpoint.

Everything that a task needs is tested before the query starts. Otherwise, a task would
fail four times with an unclear error of Spark, or write state to a disk that is not
shared.
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
"""Maximum wait of an executor for Kafka, which the driver has already reached."""

_PLAIN = re.compile(r"[\w/.+=@,-]+", re.ASCII)
"""Paths that Spark's readers accept unchanged."""


class _Problem(NamedTuple):
    """Why an executor cannot work; `unreachable` if Kafka or the topic is the cause."""

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
    """Return a checkpoint's path for Spark: on a cluster, a URL with ``file://``."""
    return f"file://{checkpoint}" if has_executors(spark) else str(checkpoint)


def send_code(context: SparkContext, directory: Path) -> None:
    """Make Spark send the modules and the compiled rules to every executor.

    Python cannot load compiled modules from a zip, so Spark unpacks the zip. On an
    executor with another Python or platform, the rules run interpreted. The archive's
    directory must exist as long as the context is used.
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
    # `_python_includes` is the search path for modules of Spark's Python workers.
    # Settings can add only zips and single files to the path.
    includes: Any = context._python_includes  # noqa: SLF001 - see above
    includes.append(archive.name)


def _add_module(files: zipfile.ZipFile, path: Path, name: Path) -> None:
    source = path.read_bytes()
    files.writestr(str(name), source)
    code = SourceFileLoader(name.stem, str(path)).get_code(name.stem)
    # By default, a compiled file has the time of its source, and Python compares them.
    # Unpacking changes the time, so this file has a hash that Python does not check.
    head = MAGIC_NUMBER + (1).to_bytes(4, "little") + source_hash(source)
    cached = f"{name.stem}.{sys.implementation.cache_tag}.pyc"
    files.writestr(
        str(name.parent / "__pycache__" / cached), head + marshal.dumps(code)
    )


def check_executors(
    spark: SparkSession, kafka: KafkaSettings, checkpoint: Path
) -> None:
    """Check that executors exist, have the code, and can use Kafka and the checkpoint.

    Executors that join later are not checked. The caller must have locked the
    checkpoint.

    Raises:
        JobFailed: No executor exists, or an executor cannot work.
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
    # With several tasks for each core, every executor gets a task.
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
            "their Python or machine differs from the driver's: %s",
            ", ".join(sorted(hosts)),
        )


def _cause(error: Exception) -> str:
    # The text of `cause_of` would not contain the name of the program.
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
        # These modules import everything that the job's tasks need.
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
