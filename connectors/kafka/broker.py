"""A Kafka broker of one's own: one node, on loopback, for demos and tests.

    with EmbeddedBroker() as broker:
        KafkaProducer(bootstrap_servers=broker.bootstrap)

It runs as a child process and is stopped with the object that started it. A parent that
is killed cannot do that, so every start first ends the brokers that such parents left
behind: `end_left_over_brokers`.

    BrokerError (a RuntimeError)
    ├── BrokerJarsUnavailable   Kafka cannot be fetched (broker_jars)
    ├── PortUnavailable         the port asked for is taken or forbidden
    ├── DataDirInUse            another broker runs on the data directory
    └── BrokerStartFailed       Kafka ended or kept silent; with the end of its log
    JavaMissing (a RuntimeError, connectors.java)
"""

from __future__ import annotations

import atexit
import base64
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import psutil
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from connectors.java import find_java
from connectors.kafka.broker_jars import (
    BrokerError,
    BrokerJarsUnavailable,
    classpath,
    default_cache_dir,
    ensure_broker_jars,
)

__all__ = [
    "BrokerError",
    "BrokerJarsUnavailable",
    "BrokerStartFailed",
    "DataDirInUse",
    "EmbeddedBroker",
    "PortUnavailable",
    "end_left_over_brokers",
]

HOST = "127.0.0.1"
MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""Largest record batch the broker takes, far above Kafka's own limit of 1 MiB."""

_START_TIMEOUT_S = 60.0
"""A start takes about 2 s on an idle machine, far longer on a crowded one."""
_STOP_TIMEOUT_S = 15.0
"""A clean stop takes 0.3 s, more when much is still to be written to disk."""
_ATTEMPT_TIMEOUT_MS = 5_000
_POLL_S = 0.05
_LOG_TAIL_LINES = 20
_LOG_TAIL_BYTES = 16 * 1024

# Names inside the data directory, which is the broker's working directory.
_DATA = "data"
_LOG = "broker.log"
_PROPERTIES = "server.properties"
_LOG4J = "log4j2.properties"

_TEMPORARY_PREFIX = "sds-monitor-broker-"

_JVM_FLAGS = (
    "-Xms128m",
    "-Xmx512m",
    # Measured on two cores with 390 B and 29 kB records: the quick compiler alone and
    # the serial collector start in 1.5 s instead of 2.0 s, take less processor time
    # per record over the first million and 210 MB instead of 340 MB.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    # A broker out of memory limps on without some of its threads; better it ends.
    "-XX:+ExitOnOutOfMemoryError",
    # Leave no files in the system's temporary directory when killed.
    "-XX:-UsePerfData",
    f"-Dlog4j2.configurationFile={_LOG4J}",
)

_SERVER_PROPERTIES = """\
# Written anew at every start of the embedded broker.
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={host}:{controller_port}
# Relative to the data directory: Kafka would split a path of ours at its commas.
log.dirs={data}
# A misspelt topic is an error, not a new topic.
auto.create.topics.enable=false
message.max.bytes={max_message_bytes}
replica.fetch.max.bytes={max_message_bytes}
# One node: nothing to replicate to, nothing to spread over, nobody to wait for.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
# The default, 128 MiB, is a quarter of the heap.
log.cleaner.dedupe.buffer.size=16777216
"""

_LOG4J_PROPERTIES = """\
status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %p %c{1}: %m%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
"""


class PortUnavailable(BrokerError):
    """The broker cannot listen on the port asked for.

    Attributes:
        port: the port.
        reason: the system's words for why.
    """

    def __init__(self, port: int, reason: str) -> None:
        super().__init__(port, reason)
        self.port = port
        self.reason = reason

    def __str__(self) -> str:
        """Say what is wrong and what to do."""
        return (
            f"port {self.port} on {HOST} cannot be used ({self.reason}): "
            "choose another, or none to get a free one"
        )


class DataDirInUse(BrokerError):
    """A broker whose parent lives runs on the data directory.

    Attributes:
        data_dir: the directory.
        pid: process id of the broker that runs on it.
    """

    def __init__(self, data_dir: Path, pid: int) -> None:
        super().__init__(data_dir, pid)
        self.data_dir = data_dir
        self.pid = pid

    def __str__(self) -> str:
        """Say what is wrong and what to do."""
        return (
            f"a broker (process {self.pid}) runs on {self.data_dir} already: "
            "use that one, stop it, or give another directory"
        )


class BrokerStartFailed(BrokerError):
    """Kafka did not come up.

    Attributes:
        reason: what happened instead.
        log_tail: the last lines Kafka wrote, empty if it wrote none.
    """

    def __init__(self, reason: str, log_tail: str) -> None:
        super().__init__(reason, log_tail)
        self.reason = reason
        self.log_tail = log_tail

    def __str__(self) -> str:
        """Say what is wrong and what to do."""
        if not self.log_tail:
            return f"the broker {self.reason} and wrote no log"
        return f"the broker {self.reason}; its log ends:\n{self.log_tail}"


class EmbeddedBroker:
    """A Kafka node in a child process, stopped at the end of the `with` block.

    It must be stopped by the process that started it; in a fork of that process `stop`
    does nothing. Ctrl-C in a terminal does not reach it, so that the parent can still
    read from it while shutting down.

    Args:
        data_dir: where topics are kept from one run to the next; made if absent.
            None: a temporary directory, removed at the stop.
        port: where clients connect on 127.0.0.1. None: a free one is chosen.
        cache_dir: where Kafka's jars are kept. None: the user's cache directory.
        start_timeout_s: how long a start may take, the fetching of jars left out.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        port: int | None = None,
        cache_dir: Path | None = None,
        start_timeout_s: float = _START_TIMEOUT_S,
    ) -> None:
        self._wanted_data_dir = data_dir
        self._wanted_port = port
        self._cache_dir = cache_dir or default_cache_dir()
        self._start_timeout_s = start_timeout_s
        self._running: _Running | None = None

    def __enter__(self) -> EmbeddedBroker:
        """Start the broker."""
        self.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the broker."""
        self.stop()

    @property
    def bootstrap(self) -> str:
        """The broker's address for clients, as `127.0.0.1:PORT`."""
        return f"{HOST}:{self._started().port}"

    @property
    def pid(self) -> int:
        """Process id of the broker."""
        return self._started().process.pid

    @property
    def data_dir(self) -> Path:
        """Absolute path of the directory that holds topics and `broker.log`."""
        return self._started().data_dir

    def start(self) -> None:
        """Start the broker and return when it answers clients.

        Brokers that killed processes left behind are ended first.

        Raises:
            JavaMissing: there is no Java 17.
            BrokerError: see the tree at the head of this module.
        """
        if self._running is not None:
            message = "the broker is started already"
            raise RuntimeError(message)
        java = find_java()
        jars = ensure_broker_jars(self._cache_dir, java)
        end_left_over_brokers()
        port, controller_port = _choose_ports(self._wanted_port)
        temporary = self._wanted_data_dir is None
        data_dir = _make_data_dir(self._wanted_data_dir)
        with _setting_up(data_dir, temporary):
            _write_configuration(data_dir, port, controller_port)
            run_kafka = [str(java), *_JVM_FLAGS, "-cp", classpath(jars)]
            if not _meta_properties(data_dir).exists():
                _format(data_dir, run_kafka)
            process = _launch(data_dir, temporary, run_kafka)
        self._running = _Running(process, port, data_dir, temporary, os.getpid())
        atexit.register(self.stop)
        try:
            self._wait_until_ready(self._running)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the broker; does nothing if it is not running."""
        running = self._running
        if running is None or running.owner_pid != os.getpid():
            return
        running.process.terminate()
        try:
            running.process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait()
        if running.temporary:
            shutil.rmtree(running.data_dir, ignore_errors=True)
        self._running = None
        atexit.unregister(self.stop)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Return the broker's exit code once it ends by itself, None at the timeout.

        Args:
            timeout_s: how long to wait; 0 only looks, None waits for ever.
        """
        try:
            return self._started().process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def log_tail(self) -> str:
        """Return the last lines the broker wrote to `broker.log`."""
        return _log_tail(self._started().data_dir)

    def _started(self) -> _Running:
        if self._running is None:
            message = "the broker is not started"
            raise RuntimeError(message)
        return self._running

    def _wait_until_ready(self, running: _Running) -> None:
        cluster_id = _cluster_id(running.data_dir)
        deadline = time.monotonic() + self._start_timeout_s
        while time.monotonic() < deadline:
            code = running.process.poll()
            if code is not None:
                reason = f"ended with exit code {code} instead of starting"
                raise BrokerStartFailed(reason, _log_tail(running.data_dir))
            if _answers(running.port, cluster_id):
                return
            time.sleep(_POLL_S)
        reason = f"answered no client within {self._start_timeout_s:g} s"
        raise BrokerStartFailed(reason, _log_tail(running.data_dir))


def end_left_over_brokers() -> list[int]:
    """Stop the embedded brokers of this user whose parents are gone.

    A broker is left over if the process that started it was killed before it could stop
    it. All others are left alone, those of other running programs above all. Temporary
    data directories of brokers ended here are removed.

    Returns:
        The process ids of the brokers that were ended.
    """
    left_over = [broker for broker in _own_brokers() if broker.is_left_over()]
    for broker in left_over:
        broker.end()
    return [broker.process.pid for broker in left_over]


@dataclass(frozen=True)
class _Running:
    """What a started EmbeddedBroker holds."""

    process: subprocess.Popen[bytes]
    port: int
    data_dir: Path
    temporary: bool
    owner_pid: int


_PARENT_MARK = "-Dsds_monitor.parent="
_DATA_DIR_MARK = "-Dsds_monitor.data_dir="
_TEMPORARY_MARK = "-Dsds_monitor.temporary=yes"


@dataclass(frozen=True)
class _FoundBroker:
    """An embedded broker in the process table, known by marks on its command line.

    The marks are there from the first moment and go with the process, which a file of
    process ids cannot promise: a parent may be killed before it writes one, and a
    number in it may by now be another process.
    """

    process: psutil.Process
    parent_pid: int
    parent_started_s: float
    """The parent's creation time, Unix s, against reuse of its process id."""
    data_dir: Path
    temporary: bool

    @classmethod
    def marks(cls, data_dir: Path, temporary: bool) -> list[str]:
        """Return the marks of a broker that this process starts."""
        parent = psutil.Process()
        marks = [
            f"{_PARENT_MARK}{parent.pid}@{parent.create_time()!r}",
            f"{_DATA_DIR_MARK}{data_dir}",
        ]
        return [*marks, _TEMPORARY_MARK] if temporary else marks

    @classmethod
    def read(cls, process: psutil.Process) -> _FoundBroker | None:
        """Return the broker that a process is, None if it is something else."""
        arguments = process.cmdline()
        parents = [a for a in arguments if a.startswith(_PARENT_MARK)]
        data_dirs = [a for a in arguments if a.startswith(_DATA_DIR_MARK)]
        if "kafka.Kafka" not in arguments or not parents or not data_dirs:
            return None
        parent = re.fullmatch(r"(\d+)@([\d.]+)", parents[0].removeprefix(_PARENT_MARK))
        if parent is None:
            return None
        return cls(
            process=process,
            parent_pid=int(parent[1]),
            parent_started_s=float(parent[2]),
            data_dir=Path(data_dirs[0].removeprefix(_DATA_DIR_MARK)),
            temporary=_TEMPORARY_MARK in arguments,
        )

    def is_left_over(self) -> bool:
        """Tell whether the parent is gone; in doubt it is not."""
        try:
            # The system gives an orphan another parent. This alone would do, were there
            # no debuggers that pose as parents.
            if self.process.ppid() == self.parent_pid:
                return False
            return _numbered_alike(self.process.pid) and not self._parent_lives()
        except psutil.Error:
            return False

    def _parent_lives(self) -> bool:
        try:
            parent = psutil.Process(self.parent_pid)
            if parent.status() == psutil.STATUS_ZOMBIE:
                return False
            # The same process's time moves a little when the system clock is corrected.
            return abs(parent.create_time() - self.parent_started_s) < 1.0
        except psutil.NoSuchProcess:
            return False

    def end(self) -> None:
        """Stop the process, and remove its data directory if that is temporary."""
        # psutil signals only the very process it looked at, never a later one of the
        # same number.
        with suppress(psutil.NoSuchProcess):
            self.process.terminate()
            if not self._ends_within(_STOP_TIMEOUT_S):
                self.process.kill()
                self._ends_within(_STOP_TIMEOUT_S)
        if self.temporary and self.data_dir.name.startswith(_TEMPORARY_PREFIX):
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def _ends_within(self, timeout_s: float) -> bool:
        # Not psutil's wait: in a container nobody may reap orphans, and for it a
        # zombie is still there.
        deadline = time.monotonic() + timeout_s
        with suppress(psutil.NoSuchProcess):
            while self.process.status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_POLL_S)
        return True


def _own_brokers() -> Iterator[_FoundBroker]:
    """Find the embedded brokers of this user."""
    own_uid = os.getuid()
    for process in psutil.process_iter():
        try:
            broker = (
                _FoundBroker.read(process) if process.uids().real == own_uid else None
            )
        except psutil.Error:
            continue
        if broker is not None:
            yield broker


def _numbered_alike(pid: int) -> bool:
    """Tell whether a process has the process numbers we have.

    From outside a container its processes are to be seen, but the parent's number in a
    mark is the container's: to us it would look gone.
    """
    own = Path("/proc/self/ns/pid")
    if not os.path.lexists(own):
        return True  # No Linux, no namespaces.
    try:
        return own.readlink() == Path(f"/proc/{pid}/ns/pid").readlink()
    except OSError:
        return False


def _choose_ports(wanted: int | None) -> tuple[int, int]:
    """Return the ports for clients and for the controller, both free right now."""
    with socket.socket() as clients, socket.socket() as controller:
        # As Java does: connections of an earlier broker that linger do not matter.
        clients.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            clients.bind((HOST, wanted or 0))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise PortUnavailable(wanted or 0, reason) from error
        controller.bind((HOST, 0))
        return clients.getsockname()[1], controller.getsockname()[1]


def _make_data_dir(wanted: Path | None) -> Path:
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX)).resolve()
    data_dir = wanted.resolve()
    for broker in _own_brokers():
        if broker.data_dir == data_dir:
            raise DataDirInUse(data_dir, broker.process.pid)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot keep its data in {data_dir} ({error.strerror})"
        raise BrokerStartFailed(reason, "") from error
    return data_dir


@contextmanager
def _setting_up(data_dir: Path, temporary: bool) -> Iterator[None]:
    """Remove a temporary directory after any error; make system errors ours."""
    try:
        yield
    except BaseException as error:
        if temporary:
            shutil.rmtree(data_dir, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        reason = f"cannot be set up in {data_dir} ({error})"
        raise BrokerStartFailed(reason, "") from error


def _write_configuration(data_dir: Path, port: int, controller_port: int) -> None:
    properties = _SERVER_PROPERTIES.format(
        host=HOST,
        port=port,
        controller_port=controller_port,
        data=_DATA,
        max_message_bytes=MAX_MESSAGE_BYTES,
    )
    (data_dir / _PROPERTIES).write_text(properties)
    (data_dir / _LOG4J).write_text(_LOG4J_PROPERTIES)


def _meta_properties(data_dir: Path) -> Path:
    """Return the file that formatting writes last: what has it is formatted."""
    return data_dir / _DATA / "meta.properties"


def _format(data_dir: Path, run_kafka: list[str]) -> None:
    # A dash at its head would make the id an option.
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    arguments = ["-t", cluster_id.replace("-", "A"), "-c", _PROPERTIES]
    try:
        tool = subprocess.run(  # noqa: S603 - fixed arguments, no shell
            [
                *run_kafka,
                "kafka.tools.StorageTool",
                "format",
                "--standalone",
                *arguments,
            ],
            cwd=data_dir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_START_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        reason = f"did not format {data_dir} within {_START_TIMEOUT_S:g} s"
        raise BrokerStartFailed(reason, "") from error
    if tool.returncode != 0:
        reason = f"could not format {data_dir}"
        raise BrokerStartFailed(reason, _last_lines(tool.stdout))


def _launch(
    data_dir: Path, temporary: bool, run_kafka: list[str]
) -> subprocess.Popen[bytes]:
    log = data_dir / _LOG
    if log.exists():
        # One log back: that of a broker which ended unexpectedly is worth reading.
        log.replace(log.with_name(f"{_LOG}.1"))
    marks = _FoundBroker.marks(data_dir, temporary)
    with log.open("wb") as log_file:
        return subprocess.Popen(  # noqa: S603 - fixed arguments, no shell
            [*run_kafka, *marks, "kafka.Kafka", _PROPERTIES],
            cwd=data_dir,
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            # Out of the terminal's reach: its Ctrl-C is for the parent.
            start_new_session=True,
        )


def _cluster_id(data_dir: Path) -> str:
    text = _meta_properties(data_dir).read_text()
    found = re.search(r"^cluster\.id=(\S+)$", text, re.MULTILINE)
    if found is None:
        reason = f"finds no cluster id in {_meta_properties(data_dir)}"
        raise BrokerStartFailed(reason, "")
    return found[1]


def _answers(port: int, cluster_id: str) -> bool:
    """Tell whether our broker, not another on the same port, serves clients."""
    try:
        # kafka-python logs a warning for each refused connection; this does not.
        socket.create_connection((HOST, port), _ATTEMPT_TIMEOUT_MS / 1000).close()
    except OSError:
        return False
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=f"{HOST}:{port}",
            bootstrap_timeout_ms=_ATTEMPT_TIMEOUT_MS,
            request_timeout_ms=_ATTEMPT_TIMEOUT_MS,
        )
        try:
            cluster = admin.describe_cluster()
        finally:
            admin.close()
    except KafkaError:
        return False
    serving = [broker for broker in cluster["brokers"] if not broker["is_fenced"]]
    return bool(serving) and cluster["cluster_id"] == cluster_id


def _log_tail(data_dir: Path) -> str:
    try:
        with (data_dir / _LOG).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            return _last_lines(file.read().decode(errors="replace"))
    except OSError:
        return ""


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_LOG_TAIL_LINES:])
