"""Files of records: every record survives exactly, and a bad line is named."""

from __future__ import annotations

import lzma
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files.record_file import UnreadableFile, read_records, write_records
from connectors.files.record_lines import format_line, parse_line
from connectors.storage.disk import replacing
from sds_core.observer.record import RawRecord, header_name

INT64 = {"min_value": -(2**63), "max_value": 2**63 - 1}

records = st.builds(
    RawRecord,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(**INT64),
    st.none() | st.binary(max_size=20) | st.text(max_size=8).map(str.encode),
    st.none() | st.binary(max_size=40),
    st.lists(
        st.tuples(
            st.sampled_from(["observer", "seq", "meta", "\N{SNOWMAN}\n"])
            | st.binary(max_size=4).map(header_name),
            st.none() | st.binary(max_size=8) | st.text(max_size=4).map(str.encode),
        ),
        max_size=4,
    ).map(tuple),
)

RECORD = RawRecord(
    2,
    7,
    1_786_276_990_123,
    b"town",
    b"\x0a\x01",
    (("seq", b"1"), ("meta", b"\xff\x00"), ("seq", None)),
)


@given(records)
def test_any_record_survives_a_line_exactly(record: RawRecord) -> None:
    """Absent, non-UTF-8 and repeated values too; a record takes one line."""
    line = format_line(record)
    assert line.count(b"\n") == 1
    assert parse_line(line) == [record]


def test_text_in_a_line_is_readable() -> None:
    """Text is written as text, other bytes as hexadecimal digits."""
    assert format_line(RECORD) == (
        b'{"partition":2,"offset":7,"timestamp_ms":1786276990123,"key":"town",'
        b'"value_hex":"0a01","headers":[["seq","1"],["meta",{"hex":"ff00"}],'
        b'["seq",null]]}\n'
    )


def test_header_name_that_is_not_utf8_is_written_in_hexadecimal_digits() -> None:
    """As any other bytes."""
    record = RECORD._replace(headers=((header_name(b"\xfftap"), b"1"),))
    line = format_line(record)
    assert line.endswith(b'"headers":[[{"hex":"ff746170"},"1"]]}\n')
    assert parse_line(line) == [record]


@pytest.mark.parametrize("name", ["frames.jsonl", "frames.jsonl.xz", "frames.jsonl.gz"])
def test_suffix_decides_the_compression(tmp_path: Path, name: str) -> None:
    """Reading gives the written records, and no other file remains."""
    path = tmp_path / name
    many = [RECORD._replace(offset=offset) for offset in range(100)]
    assert write_records(many, path) == 100
    assert list(read_records(path)) == many
    assert list(tmp_path.iterdir()) == [path]
    packed = len(b"".join(map(format_line, many))) > path.stat().st_size
    assert packed == (name != "frames.jsonl")


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """But nothing that a process still writes, and no file of others."""
    target, link = tmp_path / "new.jsonl", tmp_path / f".sds-monitor-{'c' * 16}"
    link.symlink_to(tmp_path / "elsewhere")
    names = {
        "abandoned": f".sds-monitor-{'0' * 16}",
        "young": f".sds-monitor-{'1' * 16}",
        "of others": ".sds-monitor-state",
        "elsewhere": "elsewhere",
    }
    for what, name in names.items():
        (tmp_path / name).write_text(what)
        if what != "young":
            os.utime(tmp_path / name, (0, 0))
    with replacing(tmp_path / "slow.jsonl") as slow:
        (writing,) = {one.name for one in tmp_path.iterdir()} - {
            *names.values(),
            link.name,
        }
        os.utime(tmp_path / writing, (0, 0))
        write_records([], target)
        slow.write(b"in the end")
    assert (tmp_path / "slow.jsonl").read_bytes() == b"in the end"
    left = {*names.values(), link.name, target.name, "slow.jsonl"}
    assert {one.name for one in tmp_path.iterdir()} == left - {names["abandoned"]}


def test_nothing_is_removed_beside_a_pipe(tmp_path: Path) -> None:
    """Such as in /dev, if records go to standard output."""
    beside, pipe = tmp_path / f".sds-monitor-{'0' * 16}", tmp_path / "pipe"
    beside.touch()
    os.utime(beside, (0, 0))
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_records([], pipe)
    os.close(reader)
    assert beside.exists()


def test_unfinished_file_does_not_appear(tmp_path: Path) -> None:
    """The previous file stays unchanged."""
    path = tmp_path / "frames.jsonl"
    write_records([RECORD], path)

    def broken():  # type: ignore[no-untyped-def]
        yield RECORD
        yield RECORD
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_records(broken(), path)
    assert list(read_records(path)) == [RECORD]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "neither a record nor a Waku message"),
        (b"\xff\xfe", "neither a record nor a Waku message"),
        (b"[" * 100_000, "neither a record nor a Waku message"),
        (b'{"partition":0,"timestamp_ms":1,"key":null}', "`value_hex`"),
        (b'{"partition":-1,"timestamp_ms":1,"key":null,"value_hex":""}', "partition"),
        (
            b'{"partition":0,"timestamp_ms":1,"key":null,"value_hex":"","kye":"a"}',
            "`kye`",
        ),
        (
            b'{"partition":0,"timestamp_ms":1,"key":null,"value_hex":"0g"}',
            "hexadecimal digits",
        ),
        (
            b'{"partition":0,"timestamp_ms":1,"key":{"hex":"0"},"value_hex":""}',
            "hexadecimal digits",
        ),
    ],
)
def test_bad_line_is_named_with_the_reason(
    tmp_path: Path, line: bytes, said: str
) -> None:
    """The error has file, line and reason; records before the line are returned."""
    path = tmp_path / "frames.jsonl"
    path.write_bytes(format_line(RECORD) + b"\n" + line + b"\n")
    found = read_records(path)
    assert next(found) == RECORD
    with pytest.raises(UnreadableFile, match=said) as caught:
        next(found)
    assert str(caught.value).startswith(f"{path}, line 3: ")


@pytest.mark.parametrize("name", [r"\u001b[2Jforged\n", "x" * 100_000])
def test_error_quotes_a_line_safely(tmp_path: Path, name: str) -> None:
    """A file may come from a stranger, and the error goes to a terminal."""
    path = tmp_path / "frames.jsonl"
    path.write_text('{"partition":0,"timestamp_ms":1,"%s":0}' % name)  # noqa: UP031
    with pytest.raises(UnreadableFile) as caught:
        next(read_records(path))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1_000


def test_incomplete_compressed_file_is_named(tmp_path: Path) -> None:
    """The file lacks its end or is not compressed at all."""
    path = tmp_path / "frames.jsonl.xz"
    path.write_bytes(lzma.compress(format_line(RECORD) * 1_000)[:-20])
    with pytest.raises(UnreadableFile, match=r"frames\.jsonl\.xz"):
        list(read_records(path))
    path = tmp_path / "frames.jsonl.gz"
    path.write_bytes(format_line(RECORD))
    with pytest.raises(UnreadableFile, match=r"frames\.jsonl\.gz: .*gzip"):
        list(read_records(path))


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The error is that of any unreadable file."""
    with pytest.raises(UnreadableFile, match="No such file"):
        list(read_records(tmp_path / "none.jsonl"))
