"""``sds-monitor inspect``: one frame for a person and for programs."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from connectors.files.record_file import write_records
from sds_core.observer.record import RawRecord
from sds_core.waku import RELIABLE_CHANNEL_META
from sds_core.wire import BloomFilter, Dialect, Frame, HistoryEntry, encode
from streaming.cli.inspect import command
from tests.support.cli.command import sds_monitor
from tests.support.kafka import TopicMaker

# Sender "snd", message "mid", channel "ch", one history entry, content "hi"; the vector
# of @waku/sds 0.0.8, whose filter is one byte.
VECTOR = (
    "0a03736e6412036d69641a026368508080b3c19c335a0b0a016812020102"
    "1a0268736201096a080a0272721a027273a201026869"
)
LINE = b'{"partition":0,"timestamp_ms":5,"key":null,"value_hex":""}\n'
SEGMENT = bytes.fromhex("0a20" + bytes(range(32)).hex() + "10f403180120033a03aabbcc")


def inspect(*arguments: str, data: bytes | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, list(arguments), input=data)


def inspected(*arguments: str, data: bytes | None = None) -> dict[str, Any]:
    """What it says as JSON."""
    result = inspect(*arguments, "--json", data=data)
    found = json.loads(result.output)
    assert isinstance(found, dict)
    assert result.exit_code == (1 if found["reason"] else 0)
    return found


def frame(dialect: Dialect = Dialect.SPEC, **fields: Any) -> bytes:
    """A frame as on the wire."""
    whole = {"message_id": "m", "channel_id": "ch", "lamport": 1, "content": b"c"}
    return encode(Frame.build(dialect, **(whole | fields)))


def test_frame_in_hex_is_printed_in_plain_lines() -> None:
    """In any form of digits; every field is named."""
    for text in (VECTOR, "0x" + VECTOR, VECTOR[:50] + " \n" + VECTOR[50:].upper()):
        result = inspect("--hex", data=text.encode())
        assert result.exit_code == 0
    assert result.output.splitlines() == [
        "bytes: 52",
        "dialect: spec",
        "kind: content",
        "channel: ch",
        "sender: snd",
        "message: mid",
        "Lamport timestamp: 1760000000000 ms, 2025-10-09T08:53:20.000Z",
        "causal history: 1 message",
        "  h, of hs, hint 0x0102",
        "repair request: 1 message",
        "  rr, of rs",
        "bloom filter: unreadable: a bloom filter has 1 bytes instead of 18752",
        "bytes by part: content 5, history 13, bloom 3, repair 10, other 21",
        "content: 2 bytes: hi",
    ]


def test_on_a_terminal_it_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same words; long ids are folded, not cut."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    result = inspect(data=frame(message_id="f" * 200))
    assert re.sub(r"\x1b\[[0-9;]*m", "", result.output).count("f") > 200
    assert not inspect(data=frame()).output.startswith("bytes:")


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_filter_is_read_in_both_dialects(dialect: Dialect, tmp_path: Path) -> None:
    """Parameters, fill, false-positive rate and number of ids."""
    bloom = BloomFilter(dialect)
    bloom.add_all([str(number) for number in range(500)])
    path = tmp_path / "frame"
    path.write_bytes(frame(dialect, bloom_filter=bloom.to_wire()))
    found = inspected(str(path))["frame"]
    assert found["dialect"] == dialect
    assert found["lamport_time"] is None
    told = found["bloom_filter"]
    assert (told["m_bits"], told["k"], told["capacity"]) == (150_000, 10, 10_000)
    assert told["bits_set"] == bloom.bits_set()
    assert told["error_rate"] == 0.001
    assert abs(told["estimated_ids"] - 500) < 10
    assert 0 < told["false_positive_rate"] < 1e-12
    assert sum(found["sizes"].values()) == path.stat().st_size


def test_lamport_timestamp_of_nim_is_in_seconds() -> None:
    """In the other dialect the same number would be a day of 1970."""
    found = inspected(data=frame(Dialect.NIM, lamport=1_786_276_990))
    assert found["frame"]["lamport_time"] == "2026-08-09T12:03:10.000Z"
    assert (
        "1786276990 s, 2026"
        in inspect(data=frame(Dialect.NIM, lamport=1786276990)).output
    )


def test_untrusted_text_is_escaped() -> None:
    """Control and direction characters."""
    data = frame(
        sender_id="\x1b[31meve\n\u202e",
        content=b"hi\r\nchannel: other",
        causal_history=[HistoryEntry("a\nb")],
    )
    lines = inspect(data=data).output.splitlines()
    assert "sender: \\x1b[31meve\\n\\u202e" in lines
    assert "content: 18 bytes: hi\\r\\nchannel: other" in lines
    assert "  a\\nb" in lines


def test_content_that_is_no_text_or_long_is_cut() -> None:
    """A preview and the length are printed."""
    result = inspect(data=frame(content=b"\xff" * 100))
    assert "content: 100 bytes: 0x" + "ff" * 64 + "…" in result.output.splitlines()
    result = inspect(data=frame(content=b"y" * 1_000))
    assert "content: 1,000 bytes: " + "y" * 200 + "…" in result.output.splitlines()


def test_a_segment_is_recognised() -> None:
    """With its index and count; other content is not called a segment."""
    found = inspected(data=frame(content=SEGMENT))["frame"]["segment"]
    assert found["layouts"] == ["nim-segmentation"]
    assert (found["index"], found["data_count"], found["whole_bytes"]) == (1, 3, 500)
    text = inspect(data=frame(content=SEGMENT)).output
    assert "segment: data segment 1 of 3 (counted from 0), 3 bytes of 500" in text
    assert inspected(data=frame())["frame"]["segment"] is None


@pytest.mark.parametrize(
    ("data", "reason", "offset", "said"),
    [
        (b"", "empty_value", None, "the value is empty"),
        (bytes.fromhex("0a03736e641203"), "protobuf_error", 5, "7 bytes are no SDS"),
        (bytes.fromhex("0a03736e64"), "no_message_id", None, "dialect spec"),
        (bytes.fromhex("12016d"), "neither_lamport_nor_content", None, "'m'"),
        (bytes.fromhex("12016d5005"), "no_channel", None, "names no channel"),
        (b"x" * 4_194_305, "too_large", None, "4194305 bytes, a frame at most 4194304"),
    ],
)
def test_undecodable_frame_has_its_reason(
    data: bytes, reason: str, offset: int | None, said: str
) -> None:
    """Dead-letter reason, values of the error and first bytes; exit code 1."""
    found = inspected(data=data)
    assert found["reason"] == reason
    assert said in found["error"]
    assert found["frame"] is None
    if reason == "protobuf_error":
        assert found["error_offset"] == offset
    assert found["head_hex"] == data[:128].hex()
    lines = inspect(data=data).output.splitlines()
    assert lines[0] == f"undecodable: {reason}"


def test_a_line_of_an_exported_file_is_inspected_with_its_record(
    tmp_path: Path,
) -> None:
    """Key and headers too; also from a compressed file."""
    headers = (("meta", RELIABLE_CHANNEL_META), ("observer", b"tap"), ("x", b"\xff"))
    record = RawRecord(3, 17, 1_786_276_990_123, b"ch", frame(), headers)
    for name in ("one.jsonl", "one.jsonl.gz"):
        write_records([record], tmp_path / name)
        found = inspected(str(tmp_path / name))
        assert found["record"]["key"] == "ch"
        assert found["record"]["headers"][2] == ["x", {"hex": "ff"}]
        assert found["reliable_channel"]
        assert found["frame"]["message_id"] == "m"
    lines = inspect(str(tmp_path / name)).output.splitlines()
    assert lines[:3] == [
        "record: partition 3, offset 17, 2026-08-09T12:03:10.123Z",
        "key: ch",
        "header: meta = RELIABLE-CHANNEL-API/1",
    ]
    assert "header: x = 0xff" in lines


@pytest.mark.parametrize(
    ("changes", "reason", "said"),
    [
        ({"key": b"other"}, "channel_mismatch", "key is 'other'"),
        ({"headers": (("seq", b"x"),)}, "bad_header", "header seq is b'x'"),
        (
            {"timestamp_ms": 9_000_000_000_000_000},
            "future_timestamp",
            "time is 9000",
        ),
    ],
)
def test_frame_of_a_bad_record_is_printed(
    tmp_path: Path, changes: dict[str, Any], reason: str, said: str
) -> None:
    """The reason against the record comes first."""
    record = RawRecord(0, 0, 1_000, b"ch", frame(), ())._replace(**changes)
    write_records([record], tmp_path / "one.jsonl")
    found = inspected(str(tmp_path / "one.jsonl"))
    assert found["reason"] == reason
    assert said in found["error"]
    assert found["frame"]["channel"] == "ch"


def test_heartbeat_is_recognised() -> None:
    """It has no frame, which is no error."""
    line = (
        '{"partition":0,"timestamp_ms":5,"key":null,"value_hex":"",'
        '"headers":[["kind","heartbeat"],["observer","tap"]]}'
    )
    found = inspected(data=line.encode())
    assert found["heartbeat"]
    assert found["reason"] is None


def test_a_message_of_a_waku_node_is_inspected_however_it_is_laid_out() -> None:
    """In one line or indented."""
    message = {
        "payload": b64encode(frame()).decode(),
        "contentTopic": "/a/1/b/proto",
        "timestamp": 1_786_276_990_123_000_000,
    }
    for indent in (None, 2):
        data = json.dumps(message, indent=indent).encode()
        assert inspected(data=data)["frame"]["channel"] == "ch"


@pytest.mark.parametrize(
    ("arguments", "data", "said"),
    [
        (["--hex"], b"0g", "not in hexadecimal digits"),
        ([], b"{}", "neither a record nor a Waku message"),
        (
            [],
            b'{"partition":0,"timestamp_ms":5,"key":null,"value_hex":""}\n' * 2,
            "several",
        ),
        (["none"], b"", "none cannot be read: No such file"),
        (["sds.frames:0:1"], b"", "--bootstrap"),
    ],
)
def test_invalid_input_is_wrong_use(
    arguments: list[str], data: bytes, said: str
) -> None:
    """One line and exit code 2."""
    result = inspect(*arguments, data=data)
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.kafka
def test_record_of_a_topic_is_read_by_partition_and_offset(
    kafka_topic: TopicMaker,
) -> None:
    """A missing one is named."""
    topic = kafka_topic(2)
    topic.write(b"x", partition=1)
    topic.write(frame(), partition=1, key=b"ch", time_ms=1_000)
    where = ["--bootstrap", topic.settings.bootstrap]
    found = inspected(f"{topic.settings.topic}:1:1", *where)
    assert found["record"]["offset"] == 1
    assert found["frame"]["channel"] == "ch"
    for place in ("1:2", "0:0", "7:0"):
        result = inspect(f"{topic.settings.topic}:{place}", *where)
        assert result.exit_code == 2
        assert (
            "Kafka has deleted the record, or the record never existed" in result.output
        )


def test_command_runs_from_the_shell(tmp_path: Path) -> None:
    """An error is one line."""
    path = tmp_path / "frame"
    path.write_bytes(frame())
    assert "channel: ch" in sds_monitor("inspect", str(path)).stdout
    found = sds_monitor("inspect", str(tmp_path / "none"))
    assert found.returncode == 2
    assert len(found.stderr.strip().splitlines()) == 1
