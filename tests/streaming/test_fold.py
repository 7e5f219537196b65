"""The function of the stateful operator, without Spark."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

import msgspec
import pandas as pd
import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from sds_core.observer import blob
from sds_core.observer.dead_letter_view import (
    DEAD_LETTERS,
    DeadLetter,
    DeadLetterDigest,
    DeadLetterTotals,
)
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.record import NO_SEQ
from sds_core.observer.sds.channel_view import ChannelEvent
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelMinute, ChannelTotals
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import BLOB_VERSION, TapDigest, TapTotals
from streaming.chunk import CLOCK_KEY, FORGET, REVIEW
from streaming.fold import Fold
from streaming.job import Job
from tests.support.channel import digest_of
from tests.support.digests import packed
from tests.support.frames import START_MS, FrameFactory, Record
from tests.support.streaming.groups import STATE, tap_digest
from tests.support.streaming.jobs import wait_for_end

TAP = TAPS.key("tap")


def a_state(
    value: tuple[int, bytes] | None = None,
    watermark_ms: int = 0,
    timed_out: bool = False,
) -> GroupState:
    """State as Spark hands it to the function."""
    return GroupState(
        optionalValue=Row(*value) if value else None,
        batchProcessingTimeMs=0,
        eventTimeWatermarkMs=watermark_ms,
        timeoutConf=GroupStateTimeout.EventTimeTimeout,
        hasTimedOut=timed_out,
        watermarkPresent=True,
        defined=value is not None,
        updated=False,
        removed=False,
        timeoutTimestamp=-1,
        keyAsUnsafe=b"",
        valueSchema=STATE,
    )


def rows(*digests: bytes, clock_ms: int) -> Iterator[pd.DataFrame]:
    """Rows of one group as Spark hands them over."""
    time = pd.Timestamp(clock_ms, unit="ms")
    yield pd.DataFrame({"digest": list(digests), "event_time": [time] * len(digests)})


def test_view_is_stored_with_its_version() -> None:
    """The output row has the same totals as the state."""
    state = a_state()
    (output,) = Fold()((TAP,), rows(tap_digest(1_000, 1), clock_ms=2_000), state)
    version, data = state.get
    assert version == BLOB_VERSION
    assert output["totals"][0] == blob.totals_part(data)
    totals = blob.unpack_totals(output["totals"][0], TapTotals)
    assert totals.last_seen_ms == 1_000
    assert state.oldTimeoutTimestamp == -1


def test_a_deadline_fires_just_when_the_clock_has_passed_it() -> None:
    """The timeout is chosen so that watermark T - 1 passes it when T > D."""
    state = a_state()
    digests = tap_digest(1_000, 1), tap_digest(2_000, 3)
    list(Fold()((TAP,), rows(*digests, clock_ms=2_001), state))
    deadline_ms = 2_000 + 15_000
    assert state._timeout_timestamp == deadline_ms - 1  # noqa: SLF001 - what Spark reads
    # Spark calls when the timeout lies before the watermark T - 1.
    clock_ms = deadline_ms + 1
    fired = a_state(tuple(state.get), watermark_ms=clock_ms - 1, timed_out=True)
    (output,) = Fold()((TAP,), iter([]), fired)
    totals = blob.unpack_totals(output["totals"][0], TapTotals)
    assert totals.missing_records == 1


def test_dead_letters_are_emitted_once() -> None:
    """With the batch that found them."""
    key = DEAD_LETTERS.key("0")
    letter = DeadLetter(0, 17, "empty_value")
    digest = msgspec.msgpack.encode(DeadLetterDigest([letter]))
    state = a_state()
    (output,) = Fold()((key,), rows(digest, clock_ms=1), state)
    letters = msgspec.msgpack.decode(output["events"][0], type=list[DeadLetter])
    assert letters == [letter]
    (again,) = Fold()((key,), rows(clock_ms=2), a_state(tuple(state.get)))
    assert msgspec.msgpack.decode(again["events"][0]) == []
    totals = blob.unpack_totals(again["totals"][0], DeadLetterTotals)
    assert totals.by_reason == {"empty_value": 1}


def test_forgotten_tap_has_no_state() -> None:
    """Its row without totals removes it from the board."""
    state = a_state()
    list(Fold()((TAP,), rows(tap_digest(1_000, 1), clock_ms=2_000), state))
    clock_ms = 1_000 + DEFAULTS.horizon_ms + 1
    fired = a_state(tuple(state.get), watermark_ms=clock_ms - 1, timed_out=True)
    (output,) = Fold()((TAP,), iter([]), fired)
    assert fired._removed  # noqa: SLF001 - what Spark reads
    assert not fired.exists
    assert output["totals"][0] is None
    again = a_state()
    digest = tap_digest(clock_ms + 5, 1)
    (output,) = Fold()((TAP,), rows(digest, clock_ms=clock_ms + 9), again)
    totals = blob.unpack_totals(output["totals"][0], TapTotals)
    assert (totals.last_seen_ms, totals.missing_records) == (clock_ms + 5, 0)


@pytest.mark.parametrize("with_details", [True, False])
def test_incidents_are_emitted_always_and_acknowledgements_on_request(
    with_details: bool,
) -> None:
    """Tags distinguish the two."""
    frames = FrameFactory()
    records = [
        Record(0, frames.content("heard", "alice")),
        Record(1_000, frames.sync("bob", history=["heard"])),
        Record(2_000, frames.content("unheard", "alice", lamport=1_001)),
        Record(3_000, frames.sync("bob", lamport=1_002)),
    ]
    digest = digest_of((record, record.at) for record in records)
    fold = Fold(with_details=with_details)
    key = CHANNELS.key("town")
    clock_ms = START_MS + 2_000 + DEFAULTS.ack_deadline_ms + 1
    (output,) = fold((key,), rows(packed(digest), clock_ms=clock_ms), a_state())
    events = msgspec.msgpack.decode(output["events"][0], type=list[ChannelEvent])
    found = [
        (type(event).__name__, event.message_id)
        for event in events
        if not isinstance(event, ChannelMinute)
    ]
    acknowledged = [("DefiniteAcknowledgement", "heard")] if with_details else []
    assert found == [*acknowledged, ("Incident", "unheard")]


def test_clock_row_has_no_state() -> None:
    """It moves the watermark and gives the sink the admission time."""
    state = a_state()
    (output,) = Fold()((CLOCK_KEY,), rows(b"", clock_ms=1), state)
    assert output.to_dict("records") == [
        {"key": CLOCK_KEY, "totals": None, "events": None, "clock_ms": 1}
    ]
    assert not state.exists


@pytest.mark.parametrize("time_ms", [-1, 0])
def test_record_before_1970_is_processed(time_ms: int) -> None:
    """Spark accepts only positive timeouts."""
    state = a_state()
    columns = [array("q", [one]).tobytes() for one in (time_ms, NO_SEQ)]
    digest = msgspec.msgpack.encode(TapDigest(b"", b"", *columns))
    key = TAPS.key("tap")
    list(Fold()((key,), rows(digest, clock_ms=time_ms), state))
    assert state.exists


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_forgotten_tap_is_neither_on_the_board_nor_in_the_checkpoint(
    topic: Callable[..., KafkaSettings],
    live: Callable[..., AbstractContextManager[Job]],
) -> None:
    """From the batch that forgets it, also after a restart."""
    kafka = topic()
    forgotten_ms = 1_000 + DEFAULTS.horizon_ms + 1
    for records, taps in (
        ([heartbeat("gone", 1_000), heartbeat("here", 1_000)], {"gone", "here"}),
        ([heartbeat("here", forgotten_ms)], {"here"}),
        ([], {"here"}),
    ):
        write(records, kafka)
        with live(kafka, until_caught_up=True) as job:
            wait_for_end(job)
            assert job.board.snapshot.taps.keys() == taps


def heartbeat(tap: str, time_ms: int) -> TopicRecord:
    """A tap's sign of life."""
    headers = (("kind", b"heartbeat"), ("observer", tap.encode()), ("seq", b"0"))
    return TopicRecord(0, time_ms, None, b"", headers)


def test_state_of_a_newer_release_is_refused() -> None:
    """The error says what to do."""
    state = a_state((BLOB_VERSION + 1, b""))
    expected = "run the release that wrote the checkpoint"
    with pytest.raises(blob.UnknownBlobVersion, match=expected):
        list(Fold()((TAP,), rows(clock_ms=1), state))


def test_requested_channel_has_no_state_and_leaves_its_totals() -> None:
    """Records of the same batch belong to a new channel."""
    key = CHANNELS.key("town")
    records = [Record(0, FrameFactory().content("m", "alice"))]
    digest = packed(digest_of((record, record.at) for record in records))
    fold = Fold()
    known = a_state()
    list(fold((key,), rows(digest, clock_ms=START_MS), known))
    for digests in ([FORGET], [digest, FORGET]):
        state = a_state(tuple(known.get))
        (output,) = fold((key,), rows(*digests, clock_ms=START_MS), state)
        events = msgspec.msgpack.decode(output["events"][0], type=list[ChannelEvent])
        (end,) = [one for one in events if isinstance(one, Forgotten)]
        assert blob.unpack_totals(end.totals, ChannelTotals).messages == 1
        assert state.exists is (digest in digests)
        assert (output["totals"][0] is None) is (digest not in digests)


def test_review_gives_a_silent_channel_its_timeout() -> None:
    """Or forgets it, if the days are over; an unknown one stays unknown."""
    key = CHANNELS.key("town")
    records = [Record(0, FrameFactory().content("m", "alice"))]
    digest = packed(digest_of((record, record.at) for record in records))
    state = a_state()
    list(Fold()((key,), rows(digest, clock_ms=START_MS + 3_600_000), state))
    settings = replace(DEFAULTS, forget_ms=86_400_000)
    for clock_ms, is_known in ((4_000_000, True), (86_400_001, False)):
        reviewed = a_state(tuple(state.get))
        fold = Fold(settings)
        list(fold((key,), rows(REVIEW, clock_ms=START_MS + clock_ms), reviewed))
        assert reviewed.exists is is_known
        if is_known:
            timeout_ms = reviewed._timeout_timestamp  # noqa: SLF001 - what Spark reads
            assert timeout_ms == START_MS + 86_400_000 - 1
    nobody = a_state()
    (output,) = Fold()((key,), rows(REVIEW, FORGET, clock_ms=START_MS), nobody)
    assert output["totals"][0] is None
    assert not nobody.exists
