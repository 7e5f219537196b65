"""An embedded Kafka broker: one node on the loopback interface, for demos and tests.

    with EmbeddedBroker() as broker:
        KafkaProducer(bootstrap_servers=broker.bootstrap)

A program that is killed cannot stop its broker. Every start therefore first ends the
brokers of killed programs (`end_left_over_brokers`).

`security` applies only to the listener for clients. The broker's internal listeners are
never encrypted and require no password, so another user of this machine can connect to
the internal listeners.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
from kafka.errors import KafkaError

from connectors.broker.configuration import (
    DATA,
    HOST,
    LOG4J,
    PROPERTIES,
    SCRATCH,
    BrokerSecurity,
    Ports,
    write_configuration,
)
from connectors.broker.errors import BrokerStartFailed, DataDirInUse, PortUnavailable
from connectors.broker.jars import (
    archive_of,
    classpath,
    default_cache_dir,
    ensure_broker_jars,
)
from connectors.broker.processes import (
    STOP_TIMEOUT_S,
    TEMPORARY_PREFIX,
    FoundBroker,
    end_left_over_brokers,
    own_brokers,
)
from connectors.java import find_java

_START_TIMEOUT_S = 60.0
"""Time limit of a start. A start takes about 2 s on an idle machine, and far longer on
a busy machine."""
_ATTEMPT_TIMEOUT_MS = 5_000
_POLL_S = 0.05
_LOG_TAIL_LINES = 20
_LOG_TAIL_BYTES = 16 * 1024

_PORT_ATTEMPTS = 5
_PORT_IS_TAKEN = "java.net.BindException: Address already in use"

_LOG = "broker.log"

_JVM_FLAGS = (
    "-Xms128m",
    "-Xmx512m",
    # These two options choose the fast compiler and the serial garbage collector. They
    # reduce the start time from 2.0 s to 1.5 s, memory from 340 MB to 210 MB, and the
    # CPU time of the first million records (measured on two cores with records of 390 B
    # and 29 kB).
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    # Without this option, a broker that runs out of memory loses threads but continues.
    "-XX:+ExitOnOutOfMemoryError",
    # Without these two options, a broker that is killed would leave files in the
    # system's temporary directory.
    "-XX:-UsePerfData",
    f"-Djava.io.tmpdir={SCRATCH}",
    f"-Dlog4j2.configurationFile={LOG4J}",
)


class EmbeddedBroker:
    """A Kafka node in a child process, which runs until the `with` block ends.

    Only the process that started the broker can stop the broker. If this process forks,
    `stop` does nothing in the fork. Ctrl-C in a terminal does not reach the broker, so
    the program can still read from the broker while the program shuts down.

    Args:
        data_dir: Directory for the topics; created if missing. When the broker starts
            again in this directory, it has the same topics. None: a temporary
            directory, which is removed when the broker stops.
        port: Port on 127.0.0.1 for clients. None: any free port.
        cache_dir: Cache directory; Kafka's jars are in a subdirectory. None: the user's
            cache directory.
        security: Encryption and authentication of clients. None: neither.
        jvm_options: Additional options for the broker's JVM.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        port: int | None = None,
        cache_dir: Path | None = None,
        security: BrokerSecurity | None = None,
        jvm_options: Sequence[str] = (),
    ) -> None:
        self._given_data_dir = data_dir
        self._given_port = port
        self._cache_dir = cache_dir or default_cache_dir()
        self._security = security
        self._jvm_options = jvm_options
        self._running: _Running | None = None

    def __enter__(self) -> EmbeddedBroker:
        """Start the broker."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the broker."""
        self.stop()

    @property
    def bootstrap(self) -> str:
        """Address of the broker for clients, `127.0.0.1:PORT`."""
        return f"{HOST}:{self._started().ports.clients}"

    @property
    def pid(self) -> int:
        """Process id of the broker."""
        return self._started().process.pid

    @property
    def data_dir(self) -> Path:
        """Absolute path of the directory that holds topics and `broker.log`."""
        return self._started().data_dir

    def start(self) -> None:
        """Start the broker, and return when it answers clients.

        Raises:
            JavaMissing: No Java 17 or newer was found.
            BrokerError: The broker cannot start; `connectors.broker.errors` lists the
                reasons.
            RuntimeError: The broker is already started.
        """
        if self._running is not None:
            raise RuntimeError("the broker is already started")
        java = find_java()
        jars = ensure_broker_jars(self._cache_dir, java)
        end_left_over_brokers()
        for left in reversed(range(_PORT_ATTEMPTS)):
            try:
                self._start_on_free_ports(java, jars)
            except _PortTaken:
                if not left:
                    raise
            else:
                return

    def _start_on_free_ports(self, java: Path, jars: Path) -> None:
        ports = choose_ports(self._given_port, self._security)
        temporary = self._given_data_dir is None
        data_dir = _make_data_dir(self._given_data_dir)
        with _setting_up(data_dir, temporary):
            shutil.rmtree(data_dir / SCRATCH, ignore_errors=True)
            (data_dir / SCRATCH).mkdir()
            write_configuration(data_dir, ports, self._security)
            flags = (*_JVM_FLAGS, *archive_of(jars, java).options)
            run_kafka = [str(java), *flags, "-cp", classpath(jars)]
            if not _meta_properties(data_dir).exists():
                _format(data_dir, run_kafka)
            marks = FoundBroker.marks(data_dir, temporary)
            process = _launch(data_dir, [*run_kafka, *self._jvm_options, *marks])
        self._running = _Running(process, ports, data_dir, temporary, os.getpid())
        atexit.register(self.stop)
        try:
            self._wait_until_ready(self._running)
            if self._security is not None:
                _make_users(ports.own, self._security.users)
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
            running.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait()
        if running.temporary:
            shutil.rmtree(running.data_dir, ignore_errors=True)
        self._running = None
        atexit.unregister(self.stop)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until the broker ends; return its exit code, or None after a timeout."""
        try:
            return self._started().process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def log_tail(self) -> str:
        """Return the last lines that the broker wrote to `broker.log`."""
        return _log_tail(self._started().data_dir)

    def _started(self) -> _Running:
        if self._running is None:
            raise RuntimeError("the broker is not started")
        return self._running

    def _wait_until_ready(self, running: _Running) -> None:
        cluster_id = _cluster_id(running.data_dir)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            code = running.process.poll()
            if code is not None:
                log = _log_tail(running.data_dir)
                failure = _PortTaken if _PORT_IS_TAKEN in log else BrokerStartFailed
                reason = f"the broker ended during startup, with exit code {code}"
                raise failure(reason, log)
            if _answers(running.ports.own, cluster_id):
                return
            time.sleep(_POLL_S)
        reason = f"the broker did not answer within {_START_TIMEOUT_S:g} s"
        raise BrokerStartFailed(reason, _log_tail(running.data_dir))


class _PortTaken(BrokerStartFailed):
    """Another program took a port that was free when `choose_ports` chose it."""


@dataclass(frozen=True)
class _Running:
    process: subprocess.Popen[bytes]
    ports: Ports
    data_dir: Path
    temporary: bool
    owner_pid: int


def choose_ports(wanted: int | None, security: BrokerSecurity | None) -> Ports:
    """Return free ports; `wanted` is the port for clients, or None for any free port.

    Raises:
        PortUnavailable: The wanted port is taken, forbidden or invalid.
    """
    with socket.socket() as clients, socket.socket() as own, socket.socket() as control:
        # Allow a port that still has old connections of an earlier broker, because
        # Java can listen on such a port.
        clients.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            clients.bind((HOST, wanted or 0))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise PortUnavailable(wanted or 0, reason) from error
        own.bind((HOST, 0))
        control.bind((HOST, 0))
        ports = [listener.getsockname()[1] for listener in (clients, own, control)]
    if security is None:
        ports[1] = ports[0]
    return Ports(*ports)


def _make_data_dir(wanted: Path | None) -> Path:
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX)).resolve()
    data_dir = wanted.resolve()
    for broker in own_brokers():
        if broker.data_dir == data_dir:
            raise DataDirInUse(data_dir, broker.process.pid)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"the broker cannot store its data in {data_dir} ({error.strerror})"
        raise BrokerStartFailed(reason, "") from error
    return data_dir


@contextmanager
def _setting_up(data_dir: Path, temporary: bool) -> Iterator[None]:
    """If the block fails, remove `data_dir` if it is temporary.

    An OSError of the block becomes a `BrokerStartFailed`.
    """
    try:
        yield
    except BaseException as error:
        if temporary:
            shutil.rmtree(data_dir, ignore_errors=True)
        if not isinstance(error, OSError):
            raise
        reason = f"the broker cannot be set up in {data_dir} ({error})"
        raise BrokerStartFailed(reason, "") from error


def _meta_properties(data_dir: Path) -> Path:
    return data_dir / DATA / "meta.properties"


def _format(data_dir: Path, run_kafka: list[str]) -> None:
    # The id has no dashes, because Kafka's format tool would parse an id with a leading
    # dash as an option.
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    identity = ["-t", cluster_id.replace("-", "A"), "-c", PROPERTIES]
    arguments = ["format", "--standalone", *identity]
    try:
        tool = subprocess.run(  # noqa: S603 - fixed arguments, no shell
            [*run_kafka, "kafka.tools.StorageTool", *arguments],
            cwd=data_dir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_START_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        reason = f"the broker did not format {data_dir} within {_START_TIMEOUT_S:g} s"
        raise BrokerStartFailed(reason, "") from error
    if tool.returncode != 0:
        reason = f"the broker could not format {data_dir}"
        raise BrokerStartFailed(reason, _last_lines(tool.stdout))


def _launch(data_dir: Path, run_kafka: list[str]) -> subprocess.Popen[bytes]:
    log = data_dir / _LOG
    if log.exists():
        # Keep the log of the previous broker in this directory, because the log shows
        # why a broker ended unexpectedly.
        log.replace(log.with_name(f"{_LOG}.1"))
    with log.open("wb") as log_file:
        return subprocess.Popen(  # noqa: S603 - fixed arguments, no shell
            [*run_kafka, "kafka.Kafka", PROPERTIES],
            cwd=data_dir,
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            # Ctrl-C in the terminal must reach only the parent process.
            start_new_session=True,
        )


def _cluster_id(data_dir: Path) -> str:
    text = _meta_properties(data_dir).read_text()
    match = re.search(r"^cluster\.id=(\S+)$", text, re.MULTILINE)
    if match is None:
        reason = f"no cluster id was found in {_meta_properties(data_dir)}"
        raise BrokerStartFailed(reason, "")
    return match[1]


def _answers(port: int, cluster_id: str) -> bool:
    """Return whether the broker with this cluster id answers clients on the port."""
    try:
        # First try a plain TCP connection, because kafka-python would log each refused
        # connection.
        socket.create_connection((HOST, port), _ATTEMPT_TIMEOUT_MS / 1000).close()
    except OSError:
        return False
    try:
        with closing(_admin(port)) as admin:
            cluster = admin.describe_cluster()
    except KafkaError:
        return False
    unfenced = [broker for broker in cluster["brokers"] if not broker["is_fenced"]]
    return bool(unfenced) and cluster["cluster_id"] == cluster_id


def _make_users(port: int, users: Mapping[str, str]) -> None:
    """Create the users' SCRAM credentials, or change them.

    PLAIN needs no such step, because its passwords are in the configuration file.
    Kafka's format tool can also create users, but only in a new data directory.
    """
    if not users:
        return
    mechanisms = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    with closing(_admin(port)) as admin:
        # Each mechanism has its own request, because Kafka allows each user only once
        # in a request.
        for mechanism in mechanisms:
            refused = admin.alter_user_scram_credentials(
                [
                    UserScramCredentialUpsertion(user, mechanism, password)
                    for user, password in users.items()
                ]
            )
            for user, reason in refused.items():
                if reason is not None:
                    message = f"the broker did not accept user {user} ({reason})"
                    raise BrokerStartFailed(message, "")
        # Wait until the broker has read the credentials, which happens a moment after
        # the controller has stored them.
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not all(
            len(known["credential_infos"]) == len(mechanisms)
            for known in admin.describe_user_scram_credentials(list(users)).values()
        ):
            if time.monotonic() > deadline:
                reason = (
                    f"the broker did not load its users within {_START_TIMEOUT_S:g} s"
                )
                raise BrokerStartFailed(reason, "")
            time.sleep(_POLL_S)


def _admin(port: int) -> KafkaAdminClient:
    return KafkaAdminClient(
        bootstrap_servers=f"{HOST}:{port}",
        bootstrap_timeout_ms=_ATTEMPT_TIMEOUT_MS,
        request_timeout_ms=_ATTEMPT_TIMEOUT_MS,
    )


def _log_tail(data_dir: Path) -> str:
    try:
        with (data_dir / _LOG).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            return _last_lines(file.read().decode(errors="replace"))
    except OSError:
        return ""


def _last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_LOG_TAIL_LINES:])
