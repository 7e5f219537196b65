"""Makes the Spark session of the job.

In a local session, the driver's JVM also runs Java classes of the monitor. The compiler
Janino, which is a part of Spark, compiles these classes at startup.
"""

from __future__ import annotations

import ctypes
import logging
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from connectors.class_archive import ClassArchive
from connectors.java import find_java
from connectors.scratch import claim_scratch
from streaming.executors import has_executors, send_code
from streaming.failure import JobFailed, cause_of
from streaming.master import find_unreachable
from streaming.settings import SessionSettings
from streaming.spark_home import JARS, PREPARED, use_home

_PICKLER = "BytesPickler"
_SPARKS = "org.apache.spark.sql.execution.python.EvaluatePython$BytesWrapper"
# For each array of bytes, the class writes the opcode BINBYTES of CPython's
# Lib/pickletools.py: `B`, the length in four bytes (little-endian), and the bytes.
_PICKLER_SOURCE = f"""
public final class {_PICKLER} implements net.razorvine.pickle.IObjectPickler {{
    public void pickle(
        Object object, java.io.OutputStream out, net.razorvine.pickle.Pickler pickler
    ) throws java.io.IOException {{
        byte[] data = (({_SPARKS}) object).data();
        out.write('B');
        out.write(net.razorvine.pickle.PickleUtils.integer_to_bytes(data.length));
        out.write(data);
    }}
}}
"""

_FILES = "FilesAsMade"
_FILES_SOURCE = f"""
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public final class {_FILES} extends org.apache.hadoop.fs.LocalFileSystem {{
    private static final class Raw extends RawLocalFileSystem {{
        public void setPermission(Path path, FsPermission permission) {{}}
    }}

    public {_FILES}() {{
        super(new Raw());
    }}
}}
"""

_log = logging.getLogger("sds-monitor")

_LOG4J = Path(__file__).with_name("log4j2.properties")

_ARENAS = "2"
_M_ARENA_MAX = -8
"""A parameter of mallopt(3)."""

_REMEMBERED = 10
"""Maximum number of ended jobs, stages and queries that Spark remembers."""

_RECORDING_TIMEOUT_S = 300
"""Maximum wait until the JVM has written an archive and ended, seconds.

Writing an archive takes about 10 s, and far longer on a busy machine.
"""


def use_bytes_pickler(spark: SparkSession) -> None:
    """Pass the bytes of a state from Spark's JVM to Python without conversion.

    Spark's own pickler writes bytes as a text, one character at a time. It took most of
    the JVM's time in a test with 200 channels whose states each covered an hour: 1,000
    of the 1,145 samples of Java Flight Recorder were in this pickler.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no setting for it
    pickler = _compiled(jvm, _PICKLER, _PICKLER_SOURCE).newInstance()
    # Spark registers its own picklers once, when one is first used. They are registered
    # now, so that they cannot replace the new pickler later.
    python = jvm.org.apache.spark.sql.execution.python
    getattr(getattr(python, "EvaluatePython$"), "MODULE$").registerPicklers()
    loader = jvm.Thread.currentThread().getContextClassLoader()
    wrapper = loader.loadClass(_SPARKS)
    jvm.net.razorvine.pickle.Pickler.registerCustomPickler(wrapper, pickler)


def use_files_as_made(spark: SparkSession) -> None:
    """Write the files of a checkpoint without starting a process for each file.

    If its native library is missing, Hadoop starts the program `chmod` for each local
    file. This function prevents these starts, so a file keeps the permissions that the
    umask has given it.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no setting for it
    files = jvm.org.apache.hadoop.fs.FileSystem
    settings = jvm.org.apache.hadoop.conf.Configuration(
        spark._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
    )
    found = _compiled(jvm, _FILES, _FILES_SOURCE)
    settings.setClassLoader(found.getClassLoader())
    settings.set("fs.file.impl", _FILES)
    # Hadoop caches the first file system that it makes, so the cache is cleared.
    files.closeAll()
    files.get(jvm.java.net.URI("file:///"), settings)


def _compiled(jvm: Any, name: str, source: str) -> Any:
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)


def archive_of_spark(java: Path) -> ClassArchive:
    """Return the archive of Spark's classes; its file may not exist yet."""
    return ClassArchive.of("spark", PREPARED, java, [JARS], "two jobs, no code")


def record_archive(archive: ClassArchive, use: Callable[[SparkSession], None]) -> None:
    """Make the archive of the classes that `use` loads in the JVM; takes about 30 s.

    Raises:
        connectors.java.JavaMissing: Java is missing or too old.
        OSError: The archive cannot be written.
        psutil.TimeoutExpired: The JVM did not end in time.
    """
    with archive.recording() as options:
        before = set(psutil.Process().children())
        spark = make_session(SessionSettings(), options)
        use(spark)
        (jvm,) = set(psutil.Process().children()) - before
        spark.stop()
        jvm.terminate()
        jvm.wait(_RECORDING_TIMEOUT_S)


def exit_status_of_jvm(patience_s: float = 0.0) -> int | None:
    """Wait up to `patience_s` for the end of Spark's JVM, and return its exit status.

    The status is negative if a signal ended the JVM. It is None if the JVM still runs,
    or is not a child of this process.
    """
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - Spark has no other name for it
    # If spark-submit has started the JVM, the JVM is not a child of this process.
    if gateway is None or gateway.proc is None:
        return None
    try:
        return int(gateway.proc.wait(patience_s))
    except subprocess.TimeoutExpired:
        return None


def is_ended_by_master() -> bool:
    """Whether the cluster has ended the monitor's application, so no query can run."""
    context: Any = SparkContext._active_spark_context  # noqa: SLF001 - see above
    return context is not None and bool(context._jsc.sc().isStopped())  # noqa: SLF001


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")


def make_session(
    settings: SessionSettings, jvm_options: Sequence[str] = ()
) -> SparkSession:
    """Return the running session, or start Spark with additional JVM options.

    Raises:
        connectors.java.JavaMissing: Java is missing or too old.
        OSError: The directory of temporary files cannot be created.
        JobFailed: The Spark master cannot be reached, or does not accept the job.
    """
    master = settings.master
    if master is not None and (reason := find_unreachable(master)) is not None:
        message = f"no Spark master answers at {master} ({reason}): check --master"
        raise JobFailed(message, unreachable=True)
    java = find_java()
    scratch = claim_scratch()
    os.environ.setdefault("JAVA_HOME", str(java.resolve().parent.parent))
    use_home()
    # Without these variables, workers run the first python3 in PATH.
    if settings.is_cluster:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    _limit_arenas()
    # py4j logs an error for every call to a session that is being stopped, or whose JVM
    # has ended. It writes some of these errors to the root logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)
    rocksdb = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    file_manager = (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    )
    options: dict[str, bool | float | int | str | None] = {
        "spark.api.mode": "classic",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": rocksdb,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": True,
        # The JVM processes few rows of a batch, so generated code does not pay off. By
        # default, Spark generates Java code in each task, and compiles some of this
        # code again in each batch.
        "spark.sql.codegen.wholeStage": False,
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.python.worker.faulthandler.enabled": True,
        "spark.ui.showConsoleProgress": False,
        # TieredStopAtLevel=1: The JVM uses only its quick compiler, because batches are
        # short, and most of the work is done in Python.
        # UseSerialGC, Xms: The JVM holds about ten MB of objects for a batch. The
        # default collector and the default initial heap (a 64th of the machine's
        # memory) would take 100 MB more.
        # On a cluster, the class path may differ from the class path of the archive, so
        # no archive is used.
        # Xss8m: when a query is stopped, Spark redacts its plan with regular
        # expressions that need a deep stack.
        "spark.driver.extraJavaOptions": shlex.join(
            (
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Xms128m",
                "-Xss8m",
                f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
                f"-Djava.io.tmpdir={scratch}",
                *([] if settings.is_cluster else archive_of_spark(java).options),
                *jvm_options,
            )
        ),
    }
    if not settings.is_cluster:
        # On a cluster, the settings of the Spark installation decide these options. The
        # module `streaming.worker_daemon` would be missing there: an executor receives
        # the monitor's code only after its daemon has started.
        options |= {
            "spark.ui.enabled": False,
            # Spark formats the plan of each batch as text. Only Spark's web pages show
            # the text, and these are disabled, so a short format suffices.
            "spark.sql.ui.explainMode": "simple",
            # By default, Spark remembers a thousand jobs, stages and queries with their
            # plans for its web pages, which are disabled.
            "spark.ui.retainedJobs": _REMEMBERED,
            "spark.ui.retainedStages": _REMEMBERED,
            "spark.sql.ui.retainedExecutions": _REMEMBERED,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(scratch),
            "spark.python.daemon.module": "streaming.worker_daemon",
            # By default, Spark renames files through Hadoop's FileContext. FileContext
            # runs `readlink` several times for each file, which takes 100 ms of CPU
            # time in a batch.
            "spark.sql.streaming.checkpointFileManagerClass": file_manager,
        }
    builder = SparkSession.builder.appName("sds-monitor").config(map=options)
    if master is not None:
        builder = builder.master(master)
    spark = _started(builder, master)
    partitions = settings.shuffle_partitions or spark.sparkContext.defaultParallelism
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    _search_no_packages(spark)
    if settings.is_cluster:
        send_code(spark.sparkContext, scratch)
    else:
        use_files_as_made(spark)
    accumulators: Any = spark.sparkContext._accumulatorServer  # noqa: SLF001 - has no option
    # By default, this server prints a traceback when the JVM ends. The traceback is not
    # needed, because the command reports the end of the JVM in one line.
    accumulators.handle_error = lambda request, client_address: None
    return spark


def _limit_arenas() -> None:
    """Keep the C library from spreading memory over eight arenas per core.

    Each arena keeps the memory that its threads have freed.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        os.environ["MALLOC_ARENA_MAX"] = _ARENAS
        # The environment variable affects only processes that start later. mallopt sets
        # the limit for this process.
        with suppress(AttributeError):  # Some C libraries lack mallopt.
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, int(_ARENAS))


def stop_session(spark: SparkSession) -> None:
    """Stop a session, without lines in Spark's log about unfinished tasks."""
    with suppress(Py4JNetworkError, ConnectionError):  # The JVM may have ended.
        spark.sparkContext.setLogLevel("OFF")
    spark.stop()


def warm_up(spark: SparkSession) -> threading.Thread:
    """Start the Python workers of a session while the job plans its first batch.

    Returns the thread that starts the workers. In a local session, the thread first
    registers the `BytesPickler`.
    """

    def run() -> None:
        try:
            cores = spark.sparkContext.defaultParallelism
            if not has_executors(spark):
                _use_bytes_pickler(spark)
            # This is an SQL query like the job's query, because Spark would start
            # different workers for an RDD.
            rows = spark.range(0, cores, 1, cores)
            rows.mapInArrow(lambda batches: batches, "id long").collect()
        except Exception as error:  # The first batch starts the workers.
            _log.debug("the session was not warmed up: %r", error)

    thread = threading.Thread(target=run, name="warm-up", daemon=True)
    thread.start()
    return thread


def _use_bytes_pickler(spark: SparkSession) -> None:
    try:
        use_bytes_pickler(spark)
    except (Py4JNetworkError, ConnectionError):
        raise  # The JVM has ended; the command reports its end.
    except Exception as error:  # Spark uses its own pickler instead.
        _log.warning(
            "Spark passes states to Python with Spark's own pickler, which is slower: "
            "%r",
            error,
        )


def _search_no_packages(spark: SparkSession) -> None:
    """Make Spark assume that no installed Python package provides a data source.

    Otherwise, each start of a query starts two Python processes that search for data
    sources.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no setting for it
    collections = jvm.scala.collection.immutable
    none = getattr(getattr(collections, "Map$"), "MODULE$").empty()
    sources = jvm.org.apache.spark.sql.execution.datasources
    manager = getattr(getattr(sources, "DataSourceManager$"), "MODULE$")
    getattr(manager, "dataSourceBuilders_$eq")(jvm.scala.Option.apply(none))


def _started(builder: SparkSession.Builder, master: str | None) -> SparkSession:
    try:
        return builder.getOrCreate()
    except Py4JJavaError as error:
        cause = cause_of(error)
        if "stopped SparkContext" in cause:
            # Spark stops its context if no master answers.
            cause = "what listens there does not answer as a master of this Spark"
        message = f"Spark cannot start on {master} ({cause}): check --master"
        raise JobFailed(message, unreachable=True) from error
