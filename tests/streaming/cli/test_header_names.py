"""Commands on records with a header name that is not UTF-8, over real Kafka."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from connectors.files.record_file import read_records
from connectors.kafka.dead_letter import DeadLetterWriter
from sds_core.observer.dead_letter_view import DeadLetter
from sds_core.observer.record import header_name
from sds_core.wire import Dialect, Frame, Reason, encode
from streaming.cli import group
from tests.support.kafka import KafkaTopic, TopicMaker, records

pytestmark = pytest.mark.kafka

GOOD = encode(
    Frame.build(
        Dialect.SPEC, message_id="m", channel_id="town", lamport=1, content=b"hi"
    )
)
HEADERS = ((b"observer", b"tap"), (b"\xffbad", b"x"), (b"seq", b"7"))


@pytest.fixture
def topic(kafka_topic: TopicMaker) -> KafkaTopic:
    """A topic with such a record between two others."""
    made = kafka_topic()
    made.write(GOOD, time_ms=1_000, key=b"town")
    made.write_names(*HEADERS, value=GOOD, time_ms=2_000, key=b"town")
    made.write(GOOD, time_ms=3_000, key=b"town")
    return made


def run(topic: KafkaTopic, *arguments: str) -> Result:
    """Run a command on the topic's cluster."""
    bootstrap = ("--bootstrap", topic.settings.bootstrap)
    return CliRunner().invoke(group, [*arguments, *bootstrap])


def test_inspect_names_the_header_and_decodes_the_frame(topic: KafkaTopic) -> None:
    """The name is in hexadecimal digits, as any bytes that are no text."""
    source = f"{topic.settings.topic}:0:1"
    result = run(topic, "inspect", source)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[:2] == [
        "undecodable: bad_header",
        "error: the name of a header is not UTF-8: b'\\xffbad'",
    ]
    assert "header: 0xff626164 = x" in lines
    assert "message: m" in lines
    found = json.loads(run(topic, "inspect", source, "--json").output)
    assert found["record"]["headers"] == [
        ["observer", "tap"],
        [{"hex": "ff626164"}, "x"],
        ["seq", "7"],
    ]


def test_export_and_import_keep_the_name(topic: KafkaTopic, tmp_path: Path) -> None:
    """So the figures are the same."""
    file, name = tmp_path / "frames.jsonl", topic.settings.topic
    assert run(topic, "export", "--topic", name, str(file)).exit_code == 0
    exported = list(read_records(file))
    assert [one.offset for one in exported] == [0, 1, 2]
    assert exported[1].headers == tuple((header_name(n), v) for n, v in HEADERS)
    result = run(topic, "import", "--topic", f"{name}-copy", str(file))
    assert result.exit_code == 0, result.output
    again = tmp_path / "again.jsonl"
    assert run(topic, "export", "--topic", f"{name}-copy", str(again)).exit_code == 0
    assert again.read_bytes() == file.read_bytes()


def test_dead_letter_is_listed_shown_and_replayed(topic: KafkaTopic) -> None:
    """Its name with escapes is no fault any more, so the frame is not lost."""
    letters = f"{topic.settings.topic}.dead"
    writer = DeadLetterWriter(topic.settings, topic=letters)
    try:
        writer.write([DeadLetter(0, 1, Reason.BAD_HEADER)])
    finally:
        writer.close()
    source = f"{topic.settings.topic}:0:1"

    def command(name: str, *arguments: str) -> Result:
        where = ("--dead-letter-topic", letters)
        return run(topic, "dead-letter", name, *where, *arguments)

    listed = command("list")
    assert listed.exit_code == 1
    assert f"{source}; bad_header" in listed.output
    shown = command("show", source)
    assert shown.exit_code == 0
    assert "for: bad_header" in shown.output
    assert "header: \\xffbad = x" in shown.output
    assert "what to do: it can be used now: replay it" in shown.output
    assert command("replay", "--all").exit_code == 0
    *_, sent = records(topic.settings)
    assert (sent.offset, sent.key, sent.value) == (3, b"town", GOOD)
    assert sent.headers == [
        ("observer", b"tap"),
        ("\\xffbad", b"x"),
        ("seq", b"7"),
        ("source", b"replay"),
    ]
