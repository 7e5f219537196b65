"""A topic of hostile records: from the judgement of each to the monitor's report.

An input is a file of records, as `export` writes it: a line of JSON for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from connectors.files.record_lines import BadLine, format_line, parse_line
from connectors.kafka.dead_letter_reader import read_letter
from connectors.kafka.producer import topic_record
from sds_core.observer.judgement import Dead, FrameRecord, judge
from sds_core.observer.record import Arrival, RawRecord
from sds_core.observer.sds.digest import ChannelDigester
from sds_core.observer.sds.digest_parts import LONGEST_HINT
from sds_core.observer.sds.frame_filter import usable_filter
from sds_core.observer.sds.limits import MOST_HISTORY, MOST_REQUESTS
from sds_core.observer.sds.seen_frames import frames_of
from sds_core.wire import (
    MAX_ID_CHARACTERS,
    BloomFilter,
    BloomParameters,
    Dialect,
    Frame,
    HistoryEntry,
    Reason,
    encode,
    kind_of,
    part_sizes,
)
from tests.support.digests import packed, unpacked
from tests.support.frames import START_MS
from tests.support.fuzz.errors import check_text
from tests.support.fuzz.mutation import NUMBERS, TEXTS, changed_protobuf
from tests.support.fuzz.target import Target
from tests.support.monitor import Monitor, batches
from tests.support.traffic import LONG_PAUSES_MS, PAUSES_MS

WALL_MS = START_MS + 30 * 86_400_000
"""Wall time of every admission: after all records that are not from the future."""

_HORIZON_MS = 3_600_000
_MOST_RECORDS = 25
_PARTITIONS = 3
_IDS = tuple(f"m{number}" for number in range(6))
_SENDERS = ("", "alice", "bob", "carol")
_LAMPORTS = (0, 1, 2, 3, 100, START_MS, 2**63, 2**64 - 1)
_TIMES = (-(2**63), -1, 0, 1, START_MS, WALL_MS + 60_001, 2**62, 2**63 - 1)
_BAD_HEADERS: tuple[tuple[str, bytes | None], ...] = (
    ("seq", b"-1"), ("seq", b"9" * 19), ("seq", None), ("observer", b"\xff"),
    ("source", b"nowhere"), ("waku-hash", b"0x12"), ("kind", b"heartbeat"),
    ("kind", None), ("protocol", b"mvds"), ("protocol", b"sds"), ("ephemeral", b"yes"),
    ("waku-timestamp", b"x"), ("dead-letter-reason", b"x"), ("", b""),
)  # fmt: skip


class Town:
    """Participants and taps of one channel, who mix the usual with the impossible.

    Args:
        random: Chooses everything.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now_ms = START_MS
        self._filters: dict[tuple[str, Dialect], BloomFilter] = {}
        self._seqs = {"west": 0, "east": 0}
        self._strange = random.random() < 0.7
        self._pauses_ms = random.choice((PAUSES_MS, LONG_PAUSES_MS))

    def records(self) -> list[RawRecord]:
        """Return the records of a topic in the order in which they are read."""
        count = self._random.randrange(1, _MOST_RECORDS)
        return [self._record(offset) for offset in range(count)]

    def _record(self, offset: int) -> RawRecord:
        random = self._random
        if random.random() < 0.7:
            self._now_ms += random.choice(self._pauses_ms)
        time_ms = self._now_ms - random.choice((0, 0, 0, 1, 5_000, 300_000))
        if self._odd(0.03):
            time_ms = random.choice(_TIMES)
        if random.random() < 0.08:
            headers = [*self._headers(), ("kind", b"heartbeat")]
            return RawRecord(random.randrange(_PARTITIONS), offset, time_ms, None, b"",
                             tuple(headers))  # fmt: skip
        frame = self.frame()
        value = encode(frame)
        if self._odd(0.15):
            value = changed_protobuf(random, value)
        key = random.choice((None, frame.channel_id.encode()))
        if self._odd(0.02):
            key = random.choice(TEXTS).encode()
        # One partition for a channel: otherwise figures depend on the cut.
        return RawRecord(0, offset, time_ms, key, value, tuple(self._headers()))

    def frame(self) -> Frame:
        """Return any frame of the channel."""
        random = self._random
        dialect = random.choice((Dialect.SPEC, Dialect.NIM, Dialect.NIM))
        sender = random.choice(_SENDERS)
        lamport = random.choice((None, *_LAMPORTS, random.randrange(200)))
        content = b"text" if lamport is None else random.choice((b"", b"text", b"t"))
        return Frame.build(
            dialect,
            message_id=self._id(),
            channel_id="channel"
            if not self._odd(0.02)
            else random.choice(TEXTS) or "c",
            sender_id=sender,
            lamport=lamport,
            causal_history=self._entries(),
            bloom_filter=self._filter(sender, dialect),
            repair_request=self._entries() if random.random() < 0.4 else (),
            content=content,
        )

    def _odd(self, share: float) -> bool:
        return self._strange and self._random.random() < share

    def _id(self) -> str:
        if self._odd(0.03):
            return self._random.choice(TEXTS) or "0"
        return self._random.choice(_IDS)

    def _entries(self) -> Sequence[HistoryEntry]:
        random = self._random
        count = random.choice((0, 0, 1, 1, 2, 3, 30 if self._odd(0.1) else 4))
        hints = (b"", b"", b"hint", bytes(LONGEST_HINT + 1) if self._odd(0.1) else b"h")
        return tuple(
            HistoryEntry(self._id(), random.choice(hints), random.choice(_SENDERS))
            for _ in range(count)
        )

    def _filter(self, sender: str, dialect: Dialect) -> bytes:
        random = self._random
        if random.random() < 0.3:
            return b""
        if self._odd(0.05):
            return random.randbytes(random.choice((1, 8, 16, 128)))
        if dialect is Dialect.SPEC and random.random() < 0.8:
            # All have 18,752 bytes.
            return b""
        filter_ = self._filters.get((sender, dialect))
        if filter_ is None or random.random() < 0.1:
            filter_ = BloomFilter(dialect)
            if dialect is Dialect.NIM:
                capacity = random.choice((1, 8, 60))
                filter_ = BloomFilter(dialect, BloomParameters(capacity, 0.01))
            self._filters[sender, dialect] = filter_
        if random.random() < 0.6:
            filter_.add(self._id())
        if dialect is Dialect.NIM and self._odd(0.05):
            filter_.k = random.choice((1, 2, 63, 64))
        if self._odd(0.03):
            filter_.bits[:] = b"\xff" * len(filter_.bits)
        return filter_.to_wire()

    def _headers(self) -> list[tuple[str, bytes | None]]:
        random = self._random
        headers: list[tuple[str, bytes | None]] = []
        if random.random() < 0.8:
            tap = random.choice(list(self._seqs))
            self._seqs[tap] += random.choice((0, 1, 1, 1, 1, 2, 7))
            seq = random.choice(NUMBERS) if self._odd(0.02) else self._seqs[tap]
            headers += [("observer", tap.encode()), ("seq", str(seq).encode())]
        if random.random() < 0.4:
            number = random.randrange(40)
            headers.append(("waku-hash", b"0x%064x" % number))
        if self._odd(0.03):
            headers.append(random.choice(_BAD_HEADERS))
        return headers


def _genuine() -> list[bytes]:
    return [_file(Town(Random(seed)).records()) for seed in range(20)]


def _file(records: Sequence[RawRecord]) -> bytes:
    return b"".join(format_line(record) for record in records)


def _changed(random: Random, value: bytes, other: bytes) -> bytes:
    """A topic made anew; in a fifth of the cases records of two topics."""
    if random.random() < 0.8:
        return _file(Town(random).records())
    lines = value.splitlines(keepends=True) + other.splitlines(keepends=True)
    for _ in range(random.randrange(4)):
        at, to = random.randrange(len(lines)), random.randrange(len(lines))
        lines[at], lines[to] = lines[to], lines[at]
    return b"".join(lines[: random.randrange(1, _MOST_RECORDS)])


def _check(data: bytes) -> bool:
    """Whatever the records hold, and however they are cut: one report, no error."""
    try:
        records = [one for line in data.splitlines() for one in parse_line(line)]
    except BadLine:
        return False
    for record in records:
        _check_judgement(record)
    whole = _report(records, None)
    for size in (1, 3):
        assert _report(records, size) == whole, f"cut after every {size} records"
    return True


def _check_judgement(record: RawRecord) -> None:
    """A reason of the list, a heartbeat, or a frame that its digest repeats."""
    judged = judge(record, WALL_MS)
    read_letter(record)
    if isinstance(judged, Dead):
        assert judged.reason in set(Reason)
        check_text(str(judged.error))
    elif isinstance(judged, FrameRecord):
        _check_digest(judged.frame, record)


def _check_digest(frame: Frame, record: RawRecord) -> None:
    """The view reads from the digest what the frame says."""
    digester = ChannelDigester(0)
    value = record.value or b""
    for offset in range(2):
        arrival = Arrival(offset, record.timestamp_ms, record.timestamp_ms)
        digester.add(frame, value, arrival)
    digest = unpacked(packed(digester.finish()))
    for seen in frames_of(digest):
        assert seen.kind is kind_of(frame.lamport, frame.content)
        assert (seen.dialect, seen.sender) == (frame.dialect, frame.sender_id)
        assert seen.named.message_id == frame.message_id
        assert seen.lamport == (frame.lamport or 0)
        assert [(one.message_id, one.sender) for one in seen.history] == [
            (one.message_id, one.sender_id)
            for one in frame.causal_history[-MOST_HISTORY:]
            if _is_kept(one)
        ]
        assert {one.message_id for one, _ in seen.requests} == {
            one.message_id
            for one in frame.repair_request[:MOST_REQUESTS]
            if 0 < len(one.message_id) <= MAX_ID_CHARACTERS
        }
        assert seen.sizes == part_sizes(frame.dialect, value)
        filter_ = usable_filter(frame)
        assert (seen.filter is None) == (filter_ is None)
        if seen.filter is not None and filter_ is not None:
            assert bytes(seen.filter.bits) == bytes(filter_.bits)
            assert (seen.filter.m_bits, seen.filter.k) == (filter_.m_bits, filter_.k)


def _is_kept(entry: HistoryEntry) -> bool:
    """Whether its id is not empty, and id and sender are not too long."""
    longest = max(len(entry.message_id), len(entry.sender_id))
    return bool(entry.message_id) and longest <= MAX_ID_CHARACTERS


def _report(records: Sequence[RawRecord], size: int | None) -> Any:
    """What the monitor finds, packed and unpacked between batches if there are any."""
    monitor = Monitor(restarts=size is not None, wall_ms=WALL_MS)
    topic = [topic_record(record, record.partition) for record in records]
    clock_ms = 0
    for batch, clock_ms in batches(topic, size, WALL_MS):
        monitor.read(batch, clock_ms)
    # What is stamped exactly at the clock counts only when the clock has passed it.
    monitor.read([], clock_ms + 1)
    # It checks the identities of the figures: none is negative.
    report = monitor.report(with_detail=True)
    for incident in report["incidents"]:
        # It is marked by the taps that have shown the channel at the batch's end.
        del incident["tap_hole"]
    if _span_ms(records) > _HORIZON_MS:
        # Whether a tap that was forgotten and returned blinds a channel that is not
        # called again depends on the cut.
        for channel in report["channels"].values():
            del channel["verdict"], channel["reason"]
    return report, monitor.minutes


def _span_ms(records: Sequence[RawRecord]) -> int:
    times = [one.timestamp_ms for one in records if one.timestamp_ms <= WALL_MS]
    return max(times, default=0) - min(times, default=0)


TARGETS = (
    Target("records", _genuine, _changed, _check, 800, share=4, calls_per_byte=200),
)
