"""``sds-monitor dead-letter`` over real Kafka."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.dead_letter import DeadLetterWriter
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import Client
from sds_core.observer.dead_letter_view import DeadLetter
from sds_core.observer.record import RawRecord
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.wire import Dialect, Frame, Reason, decode, encode
from streaming.cli import group
from streaming.cli.actions import dead_letter
from streaming.cli.actions.dead_letter import ADVICE
from streaming.cli.dead_letter import command
from tests.support.channel import digest_of
from tests.support.cli.command import sds_monitor
from tests.support.frames import MINUTE, START_MS, Record
from tests.support.kafka import KafkaTopic, TopicMaker

GOOD = encode(
    Frame.build(
        Dialect.SPEC, message_id="m", channel_id="town", lamport=1, content=b"hi"
    )
)
TAP = ("observer", b"tap")


@dataclass
class Letters:
    """A topic of frames and that of its dead letters."""

    topic: KafkaTopic
    name: str

    def run(self, *arguments: str) -> Result:
        """Call the command."""
        where = ["--bootstrap", self.topic.settings.bootstrap]
        name, *rest = arguments
        return CliRunner().invoke(
            command, [name, *where, "--dead-letter-topic", self.name, *rest]
        )

    def source(self, offset: int) -> str:
        """Where a record lies."""
        return f"{self.topic.settings.topic}:0:{offset}"

    def written(self, after: int) -> list[RawRecord]:
        """Records that were added to the topic of frames."""
        offsets = TopicOffsets(self.topic.settings)
        try:
            end = offsets.latest([0])[0]
        finally:
            offsets.close()
        place = OffsetRange(0, after, end)
        found = fetch(Client.CONFLUENT, self.topic.settings, [place])
        return [record for records in found for record in records]


@pytest.fixture
def letters(kafka_topic: TopicMaker) -> Letters:
    """Five dead letters, of which two can be used now, all there twice."""
    topic = kafka_topic()
    name = f"{topic.settings.topic}.dead"
    topic.write(b"\xff\xff", time_ms=1_000, key=b"town")
    topic.write(
        GOOD,
        time_ms=2_000,
        key=b"town",
        headers=[TAP, ("source", b"nowhere"), ("seq", b"7")],
    )
    topic.write(GOOD, time_ms=3_000, key=b"other\n", headers=[TAP])
    topic.write(GOOD, time_ms=4_000, headers=[TAP])
    topic.write(b"x" * 5_000_000, time_ms=5_000)
    reasons = [
        Reason.PROTOBUF_ERROR,
        Reason.BAD_HEADER,
        Reason.CHANNEL_MISMATCH,
        Reason.FUTURE_TIMESTAMP,
        Reason.TOO_LARGE,
    ]
    writer = DeadLetterWriter(topic.settings, topic=name)
    try:
        for _ in range(2):
            writer.write([DeadLetter(0, at, one) for at, one in enumerate(reasons)])
    finally:
        writer.close()
    return Letters(topic, name)


def test_every_reason_has_advice() -> None:
    """In the command and on the page."""
    assert set(ADVICE) == set(Reason)
    page = Path("docs/dead-letters.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### `(\w+)`$", page, re.MULTILINE)) == set(Reason)


@pytest.mark.kafka
def test_list_has_each_letter_once_newest_first(letters: Letters) -> None:
    """With a count by reason, and exit code 1 because there are letters."""
    result = letters.run("list")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0] == (
        f"1970-01-01T00:00:05.000Z; {letters.source(4)}; too_large; "
        "5,000,000 bytes; no key; cut: value of 5,000,000 bytes"
    )
    assert lines[2].endswith("; key other\\n")
    assert [line.split("; ")[1] for line in lines[:5]] == [
        letters.source(offset) for offset in (4, 3, 2, 1, 0)
    ]
    assert lines[5] == (
        "5 dead letters: protobuf_error 1, bad_header 1, channel_mismatch 1, "
        "future_timestamp 1, too_large 1"
    )


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        (["--reason", "bad_header"], [1]),
        (["--channel", "town"], [1, 0]),
        (["--since", "3000"], [4, 3, 2]),
        (["--limit", "2"], [4, 3]),
        (["--channel", "nobody"], []),
    ],
)
def test_list_can_be_filtered(
    letters: Letters, arguments: list[str], offsets: list[int]
) -> None:
    """All conditions must hold; an empty result is exit code 0."""
    result = letters.run("list", "--json", *arguments)
    found = [json.loads(line) for line in result.output.splitlines()]
    assert [one["source"] for one in found] == [letters.source(o) for o in offsets]
    assert result.exit_code == bool(offsets)


@pytest.mark.kafka
def test_on_a_terminal_the_list_is_a_table(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same words."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    lines = letters.run("list").output.splitlines()
    assert lines[0].split() == [
        "1970-01-01T00:00:05.000Z",
        letters.source(4),
        *("too_large", "5,000,000", "bytes", "no", "key"),
        *("cut:", "value", "of", "5,000,000", "bytes"),
    ]


@pytest.mark.kafka
def test_missing_topic_is_an_empty_list(
    kafka_topic: TopicMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """The topic is created with the first letter; its name is printed."""
    result = Letters(kafka_topic(), "nothing.dead").run("list")
    assert result.exit_code == 0
    assert "topic nothing.dead does not exist" in caplog.text
    assert "no dead letters" in result.output


@pytest.mark.kafka
@pytest.mark.parametrize("words", [("replay", "--all"), ("show", "sds.frames:0:1")])
def test_show_and_replay_need_the_topic(
    kafka_topic: TopicMaker, words: tuple[str, ...]
) -> None:
    """The error names the flag that may be wrong."""
    settings = kafka_topic().settings
    name, *rest = words
    done = sds_monitor(
        *("dead-letter", name, "--bootstrap", settings.bootstrap),
        *("--dead-letter-topic", "nothing.dead", *rest),
    )
    assert done.returncode == 3
    assert "check --dead-letter-topic" in done.stderr
    assert "--topic" not in done.stderr.replace("--dead-letter-topic", "")
    assert len(done.stderr.splitlines()) == 1


def shown(letters: Letters, offset: int, code: int) -> dict[str, Any]:
    """What is said of a letter as JSON."""
    result = letters.run("show", "--json", letters.source(offset))
    assert result.exit_code == code
    found = json.loads(result.output)
    assert isinstance(found, dict)
    return found


@pytest.mark.kafka
def test_show_prints_reason_and_advice(
    letters: Letters,
) -> None:
    """As the record would be judged now."""
    found = shown(letters, 0, 1)
    assert (found["was"], found["reason"]) == ("protobuf_error", "protobuf_error")
    assert found["advice"] == ADVICE[Reason.PROTOBUF_ERROR]
    found = shown(letters, 3, 0)
    assert (found["was"], found["reason"]) == ("future_timestamp", None)
    assert "replay" in found["advice"]
    lines = letters.run("show", letters.source(2)).output.splitlines()
    assert lines[:3] == [
        f"dead letter of: {letters.source(2)}",
        "for: channel_mismatch",
        "undecodable: channel_mismatch",
    ]
    assert lines[-1] == f"what to do: {ADVICE[Reason.CHANNEL_MISMATCH]}"


@pytest.mark.kafka
def test_too_large_value_is_read_from_its_topic(letters: Letters) -> None:
    """If it is still there; otherwise only its size is known."""
    assert shown(letters, 4, 1)["bytes"] == 5_000_000
    letters.topic.delete_before(5)
    found = shown(letters, 4, 1)
    assert found["reason"] == "too_large"
    assert found["cut"] == {"value": 5_000_000}
    topic = letters.topic.settings.topic
    assert found["error"] == (
        "the dead letter is truncated (value of 5,000,000 bytes), and topic "
        f"{topic} no longer has the record"
    )


@pytest.mark.kafka
def test_source_without_a_letter_is_wrong_use(letters: Letters) -> None:
    """The error names it; an invalid source is wrong use too."""
    result = letters.run("show", letters.source(99))
    assert result.exit_code == 2
    assert f"holds no dead letter of {letters.source(99)}" in result.output
    assert letters.run("show", "nonsense").exit_code == 2


@pytest.mark.kafka
def test_only_usable_records_are_replayed(
    letters: Letters, caplog: pytest.LogCaptureFixture
) -> None:
    """Unchanged but for the header with the source; others are refused."""
    result = letters.run("replay", "--all")
    assert result.exit_code == 1
    assert "2 records written, 3 refused" in result.output
    refused = [line for line in caplog.messages if "refused:" in line]
    assert [line.split(" refused: ")[0] for line in refused] == [
        letters.source(offset) for offset in (0, 2, 4)
    ]
    assert "channel_mismatch: the record's key is 'other\\n'" in refused[1]
    one, two = letters.written(after=5)
    assert (one.key, one.value, one.timestamp_ms) == (b"town", GOOD, 2_000)
    assert one.headers == [TAP, ("seq", b"7"), ("source", b"replay")]
    assert (two.key, two.timestamp_ms) == (None, 4_000)
    assert two.headers == [TAP, ("source", b"replay")]


@pytest.mark.kafka
def test_a_dry_run_writes_nothing(letters: Letters) -> None:
    """It prints what would be written."""
    result = letters.run("replay", "--dry-run", letters.source(1))
    assert result.exit_code == 0
    target = letters.topic.settings.topic
    assert result.output.splitlines() == [
        f"{letters.source(1)} would go to {target}",
        "1 record would be written, 0 refused",
    ]
    assert letters.written(after=5) == []


@pytest.mark.kafka
def test_dry_run_set_in_the_file_writes_nothing(
    letters: Letters, tmp_path: Path
) -> None:
    """Settings of another command's table do not count."""
    config = tmp_path / "monitor.toml"
    config.write_text(
        f'bootstrap = "{letters.topic.settings.bootstrap}"\n'
        '[replay]\nfrom = "2026-01-01"\n'
        f'[dead-letter]\ndead-letter-topic = "{letters.name}"\nlimit = 3\n'
        "[dead-letter.replay]\ndry-run = true\n"
    )
    words = ["dead-letter", "replay", "--config", str(config), letters.source(3)]
    result = CliRunner().invoke(group, words)
    assert f"{letters.source(3)} would go to" in result.output
    assert letters.written(after=5) == []


@pytest.mark.kafka
def test_force_replays_anything_to_any_topic(
    letters: Letters, kafka_topic: TopicMaker
) -> None:
    """The monitor judges the records again."""
    other = kafka_topic()
    name = other.settings.topic
    result = letters.run("replay", "--force", "--topic", name, letters.source(0))
    assert result.exit_code == 0, result.output
    (record,) = replace(letters, topic=other).written(after=0)
    assert (record.key, record.value) == (b"town", b"\xff\xff")


@pytest.mark.kafka
def test_replay_needs_exactly_one_selection(
    letters: Letters, caplog: pytest.LogCaptureFixture
) -> None:
    """A source that does not exist is reported."""
    assert letters.run("replay").exit_code == 2
    assert letters.run("replay", "--all", "--reason", "no_channel").exit_code == 2
    result = letters.run("replay", letters.source(1), letters.source(99))
    assert result.exit_code == 1
    assert f"holds no dead letter of {letters.source(99)}" in caplog.text
    assert "1 record written" in result.output


@pytest.mark.kafka
def test_future_record_can_be_replayed_later(
    kafka_topic: TopicMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """Until its time it is refused, and the error has both times."""
    ahead_ms = time.time_ns() // 1_000_000 + 600_000
    topic = kafka_topic()
    topic.write(GOOD, time_ms=ahead_ms, key=b"town")
    letters = Letters(topic, f"{topic.settings.topic}.dead")
    writer = DeadLetterWriter(topic.settings, topic=letters.name)
    try:
        writer.write([DeadLetter(0, 0, Reason.FUTURE_TIMESTAMP)])
    finally:
        writer.close()
    result = letters.run("replay", "--reason", "future_timestamp")
    assert result.exit_code == 1
    assert "future_timestamp: the record's time is" in caplog.text


@pytest.mark.parametrize("age_ms", [10 * MINUTE, 120 * MINUTE])
@pytest.mark.parametrize(
    ("headers", "replicas"),
    [({"observer": "tap", "seq": 5}, 0), ({"waku_hash": 77}, 1), ({}, 1)],
)
def test_a_record_sent_back_twice_counts_as_the_page_says(
    headers: dict[str, Any], replicas: int, age_ms: int
) -> None:
    """Within the hour a message, behind it only a frame; the second time a replica.

    Or nothing at all, if tap and number tell that it is the same record.
    """
    clock = 180 * MINUTE
    late = Record(clock - age_ms, decode(GOOD), **headers)
    view = ChannelView()
    now = Record(clock, decode(GOOD)._replace(message_id="now"), "tap", 9)
    for offset, record in enumerate([now, late, late]):
        view.apply([digest_of([(record, clock)], offset)], START_MS + clock)
    assert view.totals.frames == {"content.spec": 2}
    assert view.totals.messages == (2 if age_ms < 60 * MINUTE else 1)
    assert view.totals.replicas == replicas


@pytest.mark.kafka
def test_show_prints_the_newest_letter_of_a_recreated_topic(
    letters: Letters,
) -> None:
    """The topic had another record at the same place before."""
    topic = replace(letters.topic.settings, topic=letters.name)
    reason = ("dead-letter-reason", b"bad_header")
    source = ("dead-letter-source", letters.source(0).encode())
    for value in (b"older", GOOD):
        KafkaTopic(topic).write(value, key=b"town", headers=[TAP, reason, source])
    result = letters.run("show", letters.source(0), "--json")
    assert json.loads(result.stdout)["advice"] == "it can be used now: replay it"


@pytest.mark.kafka
def test_signal_ends_a_replay_after_the_records_that_it_has_printed(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written; the sources that it has not reached are not missing."""
    convert = dead_letter.topic_record

    def interrupted(*given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return convert(*given)

    monkeypatch.setattr(dead_letter, "topic_record", interrupted)
    result = letters.run("replay", letters.source(1), letters.source(3))
    assert result.exit_code == 0, result.output
    goes, summary = result.stdout.splitlines()
    assert goes.startswith(letters.source(1))
    assert summary == "1 record written, 0 refused"
    assert len(letters.written(after=5)) == 1
