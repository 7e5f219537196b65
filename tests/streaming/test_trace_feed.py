"""The feed of a trace: records in, digests out."""

from __future__ import annotations

from sds_core.observer.protocols import PROTOCOLS, by_name
from sds_core.observer.record import RawRecord
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tracing import Subject
from sds_core.trace.trace import TraceReader
from sds_core.wire import HistoryEntry, encode
from streaming.trace_feed import TraceFeed
from tests.support.frames import MINUTE, START_MS, FrameFactory
from tests.support.written_segments import nim_segments

SDS = by_name(PROTOCOLS)["sds"]
FRAMES = FrameFactory("town")


def feed_of(*message_ids: str) -> TraceFeed:
    """A feed at the start, with messages of the channel of the factory."""
    subjects = [Subject("town", one) for one in message_ids]
    reader = TraceReader(SDS, subjects, DEFAULTS, has_all_numbers=True)
    return TraceFeed(reader, "sds", b"town", START_MS)


def record(offset: int, message_id: str, at: int, key: bytes = b"town") -> RawRecord:
    """A record with a message of alice."""
    frame = FRAMES.content(message_id, "alice", 1_000 + offset)
    return RawRecord(0, offset, START_MS + at, key, encode(frame), ())


def test_records_that_are_read_later_are_not_from_the_future() -> None:
    """While a trace follows a topic, each stretch of records has its own wall time."""
    feed = feed_of("m0", "m1", "m2")
    feed.add(record(0, "m0", 0))
    feed.add(record(1, "m1", 2 * MINUTE))
    first, second, _ = feed.traces()
    assert first.evidence.appeared_ms == START_MS
    assert second.evidence.appeared_ms is None
    feed.admit(START_MS + 2 * MINUTE)
    feed.add(record(2, "m2", 2 * MINUTE))
    *_, third = feed.traces()
    assert third.evidence.appeared_ms == START_MS + 2 * MINUTE


def test_frames_of_other_channels_are_not_read() -> None:
    """They count for the clock and the taps, also if they hold the id."""
    feed = feed_of("m0")
    feed.add(record(0, "m0", 0, key=b"village"))
    (found,) = feed.traces()
    assert found.evidence.appeared_ms is None
    assert (found.records, found.to_ms) == (0, START_MS)


def test_a_trace_does_not_depend_on_how_often_it_is_taken() -> None:
    """Nor on which records are passed on together."""
    whole, stepwise = feed_of("m1"), feed_of("m1")
    for number in range(5):
        one = record(number, f"m{number}", number)
        whole.add(one)
        stepwise.add(one)
        stepwise.traces()
    assert whole.traces() == stepwise.traces()


def test_deadlines_pass_while_the_partition_is_silent() -> None:
    """The topic's clock moves with its other partitions."""
    feed = feed_of("lost")
    feed.admit(START_MS + 30 * MINUTE)
    for offset in range(20):
        named = [f"m{offset - 1}"] if offset else []
        named += ["lost"] if offset == 19 else []
        frame = FRAMES.content(f"m{offset}", "alice", 1_000 + offset)
        history = tuple(HistoryEntry(name, b"", "bob") for name in named)
        value = encode(frame._replace(causal_history=history))
        at_ms = START_MS + offset * MINUTE
        feed.add(RawRecord(0, offset, at_ms, b"town", value, ()))
    (before,) = feed.traces()
    assert not before.evidence.conclusions
    (after,) = feed.traces(START_MS + 40 * MINUTE)
    assert after.evidence.conclusions


def test_segments_of_the_message_are_kept_beside_many_others() -> None:
    """The memory of other payloads is limited; that of the traced one stays."""
    feed = feed_of("m0")
    (first, *_) = nim_segments(1, 3)
    contents = [first, *(nim_segments(number, 2)[0] for number in range(2, 203))]
    for offset, content in enumerate(contents):
        frame = FRAMES.content(f"m{offset}", "alice", 1_000 + offset)
        value = encode(frame._replace(content=content))
        feed.add(RawRecord(0, offset, START_MS + offset, b"town", value, ()))
    (found,) = feed.traces()
    assert found.evidence.facts["segments"]["missing_data"] == [1, 2]
