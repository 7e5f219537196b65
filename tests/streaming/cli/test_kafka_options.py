"""Options for Kafka: flags, environment and file, and what is refused."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from connectors.kafka.settings import KafkaSettings, Mechanism, Protocol
from streaming.cli import group
from streaming.cli.config_file import config_option
from streaming.cli.kafka_options import kafka_options
from tests.support.kafka_security import PASSWORD, TELLTALE, Authority

SASL = ("--kafka-protocol", "SASL_SSL", "--kafka-username", "alice")
VARIABLE = "SDS_MONITOR_KAFKA_PASSWORD"

found: list[KafkaSettings] = []


@click.command("ask")
@config_option
@kafka_options()
def ask(kafka: KafkaSettings) -> None:
    """A command that keeps what it was given."""
    found.append(kafka)


def asked(*flags: str, **environment: str) -> Result:
    """Call the command with a broker's address."""
    found.clear()
    return CliRunner().invoke(ask, ["--bootstrap", "b:1", *flags], env=environment)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A file for its owner alone, with a user for all commands."""
    path = tmp_path / "monitor of mine.toml"
    path.touch(0o600)
    path.write_text(
        'kafka-protocol = "SASL_PLAINTEXT"\n'
        'kafka-username = "alice"\n'
        f"kafka-password = '{PASSWORD}'\n"
        'kafka-mechanism = "PLAIN"\n'
    )
    return path


def test_without_flags_kafka_is_plain() -> None:
    """As a local broker is."""
    assert asked().exit_code == 0
    assert found == [KafkaSettings("b:1")]


def test_file_gives_a_user_and_a_password(config: Path) -> None:
    """No warning if only the user can read the file."""
    result = asked("--config", str(config))
    assert (result.exit_code, result.output) == (0, "")
    security = found[0].security
    assert security.protocol is Protocol.SASL_PLAINTEXT
    assert (security.username, security.password) == ("alice", PASSWORD)
    assert security.mechanism is Mechanism.PLAIN


def test_readable_file_with_a_password_is_a_warning(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The command continues; the warning does not have the password."""
    config.chmod(0o640)
    result = asked("--config", str(config))
    assert result.exit_code == 0
    (told,) = caplog.messages
    assert told.endswith(f"chmod 600 '{config}'")
    assert TELLTALE not in result.output + told
    config.write_text('kafka-username = "alice"\nkafka-protocol = "SASL_SSL"\n')
    assert asked("--config", str(config), **{VARIABLE: "x"}).exit_code == 0
    assert caplog.messages == [told]


def test_file_with_a_list_of_passwords_is_refused_without_showing_them(
    config: Path,
) -> None:
    """Other values of a wrong type are printed."""
    config.write_text(f'kafka-password = ["{TELLTALE}"]\n')
    result = asked("--config", str(config))
    assert result.exit_code == 2
    assert "kafka-password" in result.output
    assert TELLTALE not in result.output


@pytest.mark.parametrize("flag", ["--kafka-password", "--kafka-key-password"])
def test_password_on_the_command_line_is_refused(flag: str) -> None:
    """The error says where it may be, and does not repeat it."""
    result = asked(*SASL, flag, TELLTALE)
    assert result.exit_code == 2
    variable = "SDS_MONITOR_" + flag.removeprefix("--").replace("-", "_").upper()
    assert variable in result.output
    assert TELLTALE not in result.output


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--kafka-protocol", "SASL_SSL"), "--kafka-username"),
        (SASL, VARIABLE),
        (("--kafka-username", "alice"), "SASL_SSL or SASL_PLAINTEXT"),
        (("--kafka-ca-file", __file__), "SSL or SASL_SSL"),
        (("--kafka-key-file", __file__), "--kafka-key-file is given"),
        (
            ("--kafka-protocol", "SSL", "--kafka-key-file", __file__),
            "give both",
        ),
        (("--kafka-protocol", "SSL", "--kafka-ca-file", "nowhere.pem"), "nowhere.pem"),
        (
            ("--kafka-protocol", "SSL", "--kafka-ca-file", __file__),
            "contains no readable certificates",
        ),
        (("--kafka-protocol", "TLS"), "SASL_SSL"),
        (("--kafka-mechanism", "GSSAPI"), "SCRAM-SHA-512"),
    ],
)
def test_invalid_flags_are_refused(flags: tuple[str, ...], said: str) -> None:
    """Before anything starts, with what to do."""
    result = asked(*flags)
    assert result.exit_code == 2
    assert said in result.output


def test_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    """The error has both files."""
    authority = Authority(tmp_path)
    own, other = authority.issue("own.test"), authority.issue("other.test")
    result = asked(
        *("--kafka-protocol", "SSL", "--kafka-ca-file", str(authority.ca_file)),
        *("--kafka-certificate-file", str(own.certificate_file)),
        *("--kafka-key-file", str(other.key_file)),
    )
    assert result.exit_code == 2
    assert str(other.key_file) in result.output


def test_every_command_with_kafka_has_these_flags() -> None:
    """A command with `--bootstrap` has all of them."""
    ours = {option.name for option in ask.params} - {"topic"}
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            flags = {parameter.name for parameter in command.params}
            assert "bootstrap" not in flags or ours <= flags, name


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        ("sds.eu,sds.eu", "sds.eu,sds.eu contains a topic twice"),
        ("sds.eu,", "'' is not a valid topic name"),
        ("sds.eu, sds.us", "' sds.us' is not a valid topic name"),
    ],
)
def test_invalid_list_of_topics_is_refused(topics: str, error: str) -> None:
    """A space belongs to no name."""
    words = ["replay", "--bootstrap", "b:1", "--topic", topics]
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 2
    assert error in result.output


def test_partitions_of_several_topics_have_numbers() -> None:
    """Those of the first topic their own."""
    kafka = KafkaSettings("b:1", "sds.eu,sds.us")
    assert kafka.topics == ("sds.eu", "sds.us")
    for place in (("sds.eu", 0), ("sds.eu", 3), ("sds.us", 0), ("sds.us", 199_999)):
        assert kafka.place_of(kafka.number_of(*place)) == place
    assert kafka.number_of("sds.eu", 3) == 3
