"""TLS, users and certificates, on real Kafka that requires them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
from cryptography.x509 import load_pem_x509_certificates
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.clients import kafka_python_options, ssl_context
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.dead_letter import DeadLetterWriter
from connectors.kafka.handshake import check_admission
from connectors.kafka.heartbeat import heartbeats
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import (
    Client,
    KafkaRefused,
    KafkaSettings,
    Mechanism,
    Protocol,
    SecurityUnusable,
)
from connectors.kafka.topics import ensure_frames_topic
from sds_core.observer.dead_letter_view import DeadLetter
from sds_core.observer.record import RawRecord
from sds_core.simulation.comparison import compare
from sds_core.wire import Reason
from streaming.doctor.kafka import check_topics
from streaming.doctor.services import find_expiring
from streaming.settings import JobSettings, SourceSettings
from tests.support.kafka import KafkaTopic
from tests.support.kafka_security import (
    PASSWORD,
    TELLTALE,
    USER,
    WRONG,
    Authority,
    SecuredBroker,
    broker_with_certificates,
    broker_with_users,
)

pytestmark = pytest.mark.kafka

SCENARIO = """
name = "short"
description = "One room for a moment."
duration_s = 30
settle_s = 30
participants = 4
channels = [
    { name = "room", count = 1, participants = 4, traffic = { mean_interval_s = 3 } },
]
[network]
loss = 0.1
[[taps]]
name = "tap"
"""
SOON_S = 20.0
"""Far below the settings' time, for a machine that is busy."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs what both brokers and their clients show."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def with_users(authority: Authority) -> Iterator[SecuredBroker]:
    """A broker that requires a user, by TLS."""
    with broker_with_users(authority) as broker:
        yield broker


@pytest.fixture(scope="module")
def with_certificates(authority: Authority) -> Iterator[SecuredBroker]:
    """A broker that asks for a certificate."""
    with broker_with_certificates(authority) as broker:
        yield broker


@pytest.fixture(params=["certificate", *Mechanism])
def secured(request: pytest.FixtureRequest) -> KafkaSettings:
    """A way to be let in, to a topic that only this test uses."""
    if request.param == "certificate":
        settings = request.getfixturevalue("with_certificates").settings
    else:
        settings = request.getfixturevalue("with_users").but(mechanism=request.param)
    return replace(settings, topic=f"frames.{request.param}")


def test_every_use_of_kafka_is_secured(secured: KafkaSettings) -> None:
    """Topics, writing, offsets, commits, both readers, dead letters, heartbeats."""
    assert ensure_frames_topic(secured, 2) == 2
    records = [TopicRecord(0, 1_000 + n, b"ch", b"frame", ()) for n in range(3)]
    assert write(records, secured) == 3
    with closing(TopicOffsets(secured)) as offsets:
        assert offsets.latest([0]) == {0: 3}
        assert offsets.first_at_or_after([0], 1_001)[0].offset == 1
        offsets.commit("group", {0: 3})
        for client in Client:
            (read,) = fetch(client, secured, [OffsetRange(0, 0, 3)])
            assert [record.value for record in read] == [b"frame"] * 3
        dead = replace(secured, topic=f"{secured.topic}.dead")
        with closing(DeadLetterWriter(secured, topic=dead.topic)) as writer:
            writer.write([DeadLetter(0, 1, Reason.PROTOBUF_ERROR)])
        ((letter,),) = fetch(Client.CONFLUENT, dead, [OffsetRange(0, 0, 1)])
        assert letter.timestamp_ms == 1_001
        with heartbeats(secured, interval_s=0.1):
            KafkaTopic.wait_for(lambda: offsets.latest([1])[1] > 0)


Refused = Callable[[SecuredBroker, SecuredBroker, Authority], KafkaSettings]

REFUSED: dict[str, tuple[Refused, str, str]] = {
    "wrong password": (
        lambda users, _, __: users.but(password=WRONG),
        "rejects the login of 'alice' with mechanism SCRAM-SHA-512",
        "check --kafka-username, the password",
    ),
    "wrong password in plain": (
        lambda users, _, __: users.but(password=WRONG, mechanism=Mechanism.PLAIN),
        "rejects the login of 'alice' with mechanism PLAIN",
        "check --kafka-username, the password",
    ),
    "unknown authority": (
        lambda users, _, stranger: users.but(ca_file=str(stranger.ca_file)),
        "certificate cannot be trusted",
        "--kafka-ca-file",
    ),
    "no authority": (
        lambda users, _, __: users.but(ca_file=None),
        "certificate cannot be trusted",
        "--kafka-ca-file",
    ),
    "other host name": (
        lambda users, _, __: replace(
            users.settings,
            bootstrap=users.settings.bootstrap.replace("127.0.0.1", "localhost"),
        ),
        "Hostname mismatch",
        "in --bootstrap, use a name from the certificate",
    ),
    "plain to TLS": (
        lambda users, _, __: users.but(protocol=Protocol.PLAINTEXT),
        "speaks TLS",
        "--kafka-protocol SSL or SASL_SSL",
    ),
    "no user": (
        lambda users, _, __: users.but(protocol=Protocol.SSL),
        "requires a login",
        "--kafka-protocol SASL_SSL",
    ),
    "a user too many": (
        lambda users, certificates, _: certificates.but(
            protocol=Protocol.SASL_SSL, username=USER, password=PASSWORD
        ),
        "does not accept logins",
        "--kafka-protocol SSL",
    ),
    "no certificate": (
        lambda _, certificates, __: certificates.but(
            certificate_file=None, key_file=None
        ),
        "ended the TLS handshake",
        "--kafka-certificate-file",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusal_is_reported_at_once_with_a_remedy(
    case: str,
    with_users: SecuredBroker,
    with_certificates: SecuredBroker,
    stranger: Authority,
) -> None:
    """One line without secrets, long before the timeout."""
    make, cause, remedy = REFUSED[case]
    settings = make(with_users, with_certificates, stranger)
    begun_s = time.monotonic()
    with (
        pytest.raises(KafkaRefused) as refused,
        closing(TopicOffsets(settings)) as offsets,
    ):
        offsets.partitions()
    assert time.monotonic() - begun_s < SOON_S
    text = str(refused.value)
    assert cause in text
    assert remedy in text
    assert settings.bootstrap in text
    assert "\n" not in text
    for shown in (text, repr(refused.value), repr(settings)):
        assert TELLTALE not in shown


def test_missing_permission_is_reported_at_once(with_users: SecuredBroker) -> None:
    """No retry, neither for metadata, nor to read, nor to write."""
    hidden = replace(with_users.settings, topic="hidden")
    shown = replace(with_users.settings, topic="shown")
    record = TopicRecord(0, 1_000, b"ch", b"frame", ())
    for settings in (hidden, shown):
        ensure_frames_topic(settings, 1)
        write([record], settings)
    with closing(KafkaAdminClient(**kafka_python_options(shown))) as admin:
        admin.create_acls(
            [
                # Who may do something may do nothing else.
                rule("somebody", ACLOperation.READ, hidden.topic),
                rule(USER, ACLOperation.DESCRIBE, shown.topic),
            ]
        )
    attempts: list[tuple[KafkaSettings, Callable[[], object]]] = [
        (hidden, TopicOffsets(hidden).partitions),
        *((shown, partial(read_one, client, shown)) for client in Client),
        (shown, lambda: write([record], shown)),
    ]
    begun_s = time.monotonic()
    for settings, attempt in attempts:
        told = f"alice may not do this .*{settings.topic}"
        with pytest.raises(KafkaRefused, match=told):
            attempt()
    assert time.monotonic() - begun_s < 2 * SOON_S


def test_doctor_finds_rights_that_a_user_lacks(
    with_users: SecuredBroker, tmp_path: Path
) -> None:
    """On topics that exist, that are hidden, that must be created, and on the group."""
    frames, hidden = (replace(with_users.settings, topic=f"{n}.rights") for n in "fh")
    for settings in (frames, hidden):
        ensure_frames_topic(settings, 1)
    cluster = (ResourceType.CLUSTER, "kafka-cluster")
    rules = [
        rule(USER, ACLOperation.DESCRIBE, frames.topic),
        rule("somebody", ACLOperation.READ, hidden.topic),
        rule(USER, ACLOperation.DESCRIBE, "new.rights"),
        rule("somebody", ACLOperation.READ, "g.rights", ResourceType.GROUP),
        rule(USER, ACLOperation.DESCRIBE, "kafka-cluster", ResourceType.CLUSTER),
        # To remove the rules: those of other tests are for topics.
        rule(USER, ACLOperation.ALTER, "kafka-cluster", ResourceType.CLUSTER),
    ]

    def found(dead_letter_topic: str) -> tuple[str, ...]:
        job = JobSettings(
            SourceSettings(frames),
            tmp_path,
            dead_letter_topic=dead_letter_topic,
            group="g.rights",
        )
        return check_topics(job, writes_heartbeats=True).findings

    with closing(KafkaAdminClient(**kafka_python_options(frames))) as admin:
        admin.create_acls(rules)
        try:
            reading, hiding, committing = found(hidden.topic)
            _, creating, _ = found("new.rights")
        finally:
            on_cluster = ResourcePatternFilter(*cluster, ACLResourcePatternType.ANY)
            every = ACLOperation.ANY, ACLPermissionType.ANY
            admin.delete_acls([ACLFilter(None, None, *every, on_cluster)])
    assert reading.startswith(f"{USER} lacks the right Read and Write on topic f.right")
    assert hiding.startswith(f"{USER} lacks the right Describe on topic h.rights")
    assert "may not commit offsets of group g.rights" in committing
    assert f"topic new.rights does not exist, and {USER} may not create it" in creating


def test_doctor_finds_certificates_that_end_soon(
    with_certificates: SecuredBroker,
) -> None:
    """Two weeks before, and afterwards."""
    security = with_certificates.settings.security
    assert security.certificate_file is not None
    file = Path(security.certificate_file)
    until = min(
        one.not_valid_after_utc for one in load_pem_x509_certificates(file.read_bytes())
    )
    only, end_ms, day_ms = (
        {"--kafka-certificate-file": str(file), "--kafka-ca-file": None},
        until.timestamp() * 1e3,
        864e5,
    )
    assert not list(find_expiring(only, int(end_ms - 15 * day_ms)))
    for now_ms, verb in ((end_ms - 13 * day_ms, "expires"), (end_ms + 1, "expired")):
        (finding,) = find_expiring(only, int(now_ms))
        assert f"{file} {verb} on {until:%Y-%m-%d}: renew it" in finding


def rule(
    user: str,
    operation: ACLOperation,
    name: str,
    resource: ResourceType = ResourceType.TOPIC,
) -> ACL:
    """Let a user do one thing with a topic, or another resource, and nobody another."""
    return ACL(
        f"User:{user}",
        "*",
        operation,
        ACLPermissionType.ALLOW,
        ResourcePattern(resource, name),
    )


def read_one(client: Client, settings: KafkaSettings) -> list[list[RawRecord]]:
    """Read the first record of a topic."""
    return list(fetch(client, settings, [OffsetRange(0, 0, 1)]))


@pytest.mark.parametrize("protocol", [Protocol.SSL, Protocol.SASL_SSL])
def test_broker_without_tls_is_distinguished_from_a_stopped_one(
    protocol: Protocol, with_users: SecuredBroker, kafka_broker: EmbeddedBroker
) -> None:
    """It only closes the connection, so it is tried again without TLS."""
    settings = with_users.but(protocol=protocol)
    with pytest.raises(KafkaRefused, match="does not use TLS"):
        check_admission(replace(settings, bootstrap=kafka_broker.bootstrap))


def test_one_accepting_broker_is_enough(
    with_users: SecuredBroker, with_certificates: SecuredBroker
) -> None:
    """A refusal counts only if no broker accepts; dead addresses are ignored."""
    settings = with_users.settings
    other = with_certificates.settings.bootstrap
    both = replace(settings, bootstrap=f"127.0.0.1:1,{other},{settings.bootstrap}")
    assert check_admission(both) is None
    with pytest.raises(KafkaRefused):
        check_admission(replace(settings, bootstrap=f"{other},127.0.0.1:1"))
    nobody = check_admission(replace(settings, bootstrap="127.0.0.1:1"))
    assert isinstance(nobody, ConnectionRefusedError)


@pytest.mark.parametrize("client", Client)
def test_changed_password_ends_a_read_soon(
    with_users: SecuredBroker, client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    """A refused reader does not retry, and its client prints nothing."""
    settings = with_users.but(password=WRONG)
    begun_s = time.monotonic()
    with pytest.raises(KafkaRefused, match="rejects the login of 'alice'"):
        list(fetch(client, settings, [OffsetRange(0, 0, 1)]))
    assert time.monotonic() - begun_s < 2 * SOON_S
    assert capfd.readouterr() == ("", "")


def test_refused_command_is_one_line_and_code_3(with_users: SecuredBroker) -> None:
    """Run as an operator does, with the password in the environment."""
    security = with_users.settings.security
    done = subprocess.run(
        [
            *(sys.executable, "-m", "streaming.cli", "simulate"),
            *("--bootstrap", with_users.settings.bootstrap),
            *("--kafka-protocol", "SASL_SSL", "--kafka-username", USER),
            *("--kafka-ca-file", str(security.ca_file)),
        ],
        env=os.environ | {"SDS_MONITOR_KAFKA_PASSWORD": WRONG},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("sds-monitor: Kafka at")
    assert done.stderr.count("\n") == 1
    assert TELLTALE not in done.stdout + done.stderr


def test_key_without_its_password_is_refused_without_a_prompt(
    with_certificates: SecuredBroker,
) -> None:
    """OpenSSL would ask on the terminal and wait."""
    settings = with_certificates.but(key_password=None)
    with pytest.raises(SecurityUnusable, match="SDS_MONITOR_KAFKA_KEY_PASSWORD"):
        ssl_context(settings.security)


def test_broker_keeps_its_secrets(with_users: SecuredBroker) -> None:
    """Its files are private to the user, and `ps` and log have no secret."""
    holding = [p for p in with_users.data_dir.iterdir() if shows_secret(p)]
    assert [path.name for path in holding] == ["server.properties"]
    for name in ("server.properties", "keystore.pem"):
        assert (with_users.data_dir / name).stat().st_mode & 0o077 == 0
    assert TELLTALE not in " ".join(psutil.Process(with_users.pid).cmdline())


@pytest.mark.spark
@pytest.mark.slow
def test_monitor_on_secured_kafka_finds_the_truth_and_shows_no_secret(
    with_users: SecuredBroker, tmp_path: Path
) -> None:
    """Checks output, report, checkpoint, files, and `ps` during the run."""
    security = with_users.settings.security
    config = tmp_path / "monitor.toml"
    config.touch(0o600)
    config.write_text(
        f"bootstrap = {json.dumps(with_users.settings.bootstrap)}\n"
        'topic = "simulated"\n'
        f'kafka-protocol = "{security.protocol}"\n'
        f"kafka-ca-file = {json.dumps(security.ca_file)}\n"
        f'kafka-username = "{USER}"\n'
        f"kafka-password = {json.dumps(PASSWORD)}\n"
    )
    (tmp_path / "short.toml").write_text(SCENARIO)
    outputs = tmp_path / "outputs"
    (outputs / "local").mkdir(parents=True)
    commands = (
        (
            *("simulate", "--scenario", str(tmp_path / "short.toml"), "--seed", "3"),
            *("--speed", "0", "--truth", str(outputs / "truth.json")),
        ),
        (
            *("run", "--until-caught-up", "--metrics-port", "0", "--heartbeat"),
            *("--checkpoint", str(outputs / "checkpoint")),
            *("--report", str(outputs / "report.json"), "--report-detail"),
        ),
    )
    seen: set[str] = set()
    for name, *flags in commands:
        with (outputs / f"{name}.txt").open("w") as output:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "streaming.cli", name),
                    *("--config", str(config), *flags),
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {"SPARK_LOCAL_DIRS": str(outputs / "local")},
            )
            try:
                seen |= command_lines_of(process, outputs)
                assert process.wait() == 0, (outputs / f"{name}.txt").read_text()
            finally:
                process.kill()
                process.wait()
    truth = json.loads((outputs / "truth.json").read_text())
    report = json.loads((outputs / "report.json").read_text())
    assert [one for one in compare(truth, report) if not one.same] == []
    assert report["totals"]["messages"] > 0
    assert any("java" in line for line in seen)
    assert [line for line in seen if TELLTALE in line] == []
    written = files_in(outputs)
    assert any("offsets" in path.parts for path in written)
    assert [path for path in written if shows_secret(path)] == []


def files_in(directory: Path) -> list[Path]:
    """All that it holds, at any depth; directories may vanish meanwhile."""
    return [
        Path(parent, name) for parent, _, names in os.walk(directory) for name in names
    ]


def shows_secret(path: Path) -> bool:
    """Whether a file has a secret in it; one that is gone by now has none."""
    try:
        return path.is_file() and TELLTALE.encode() in path.read_bytes()
    except OSError:
        return False


def command_lines_of(process: subprocess.Popen[bytes], directory: Path) -> set[str]:
    """All command lines of a process and what it starts, until it ends.

    Meanwhile no file in the directory may show a secret.
    """
    seen: set[str] = set()
    parent = psutil.Process(process.pid)
    while process.poll() is None:
        with suppress(psutil.Error):
            for one in (parent, *parent.children(recursive=True)):
                seen.add(" ".join(one.cmdline()))
        assert [path for path in files_in(directory) if shows_secret(path)] == []
        time.sleep(0.1)
    return seen
