"""Options for the history: defaults, and what is refused."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from connectors.kafka.settings import KafkaSettings
from streaming.cli.config_file import config_option
from streaming.cli.kafka_options import kafka_options
from streaming.cli.run_options import history_options
from streaming.cli.settings import setting
from streaming.settings import HistorySettings

found: list[HistorySettings] = []


@click.command("ask")
@config_option
@kafka_options()
@setting("--checkpoint", type=click.Path(path_type=Path))
@history_options
def ask(kafka: KafkaSettings, checkpoint: Path, history: HistorySettings) -> None:
    """A command that keeps what it was given."""
    found.append(history)


def asked(*flags: str) -> Result:
    """Call the command with a checkpoint."""
    found.clear()
    return CliRunner().invoke(
        ask, ["--bootstrap", "b:1", "--checkpoint", "/state", *flags]
    )


def test_history_is_in_the_checkpoint_by_default() -> None:
    """Relative paths begin in the current directory."""
    assert asked().exit_code == 0
    assert found == [HistorySettings(Path("/state/history"))]
    assert asked("--history", "there").exit_code == 0
    assert found == [HistorySettings(Path.cwd() / "there")]


def test_all_options_can_be_in_a_file(tmp_path: Path) -> None:
    """Also that there are no topics."""
    path = tmp_path / "monitor.toml"
    path.write_text('history-days = 7\nhistory-topics = false\nminutes-topic = "m"')
    assert asked("--config", str(path)).exit_code == 0
    directory = Path("/state/history")
    assert found == [HistorySettings(directory, 7, False, minutes_topic="m")]


@pytest.mark.parametrize(
    "flags",
    [
        ("--incidents-topic", "sds.frames"),
        ("--minutes-topic", "sds.frames"),
        ("--minutes-topic", "m", "--incidents-topic", "m"),
        ("--verdicts-topic", "sds.channel-minutes"),
    ],
)
def test_each_topic_holds_records_of_one_kind(flags: tuple[str, ...]) -> None:
    """Otherwise the monitor would read its own history as frames."""
    answer = asked(*flags)
    assert answer.exit_code == 2
    assert "must be different topics" in answer.output


@pytest.mark.parametrize("flag", ["--topic", "--incidents-topic"])
def test_dead_letters_have_a_topic_of_their_own(flag: str) -> None:
    """Otherwise the monitor would copy its own dead letters again and again."""
    answer = asked(flag, "sds.dead-letter")
    assert answer.exit_code == 2
    assert "give another topic" in answer.output
