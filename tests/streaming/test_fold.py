"""The stateful operator's function, without Spark around it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pandas as pd
import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from sds_core.observer import blob
from sds_core.observer.dead_letter_view import DeadLetter, DeadLetterDigest
from sds_core.observer.tap_view import TapDigest
from sds_core.observer.totals import DeadLetterTotals, TapTotals
from streaming.fold import make_fold
from streaming.keys import KeyKind, make_key

SCHEMA = StructType(
    [StructField("version", IntegerType()), StructField("blob", BinaryType())]
)
TAP = make_key(KeyKind.TAP, "tap")


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
        valueSchema=SCHEMA,
    )


def rows(*digests: bytes, clock_ms: int) -> Iterator[pd.DataFrame]:
    """Rows of one group as Spark hands them over."""
    time = pd.Timestamp(clock_ms, unit="ms")
    yield pd.DataFrame({"digest": list(digests), "event_time": [time] * len(digests)})


def tap_digest(time_ms: int, seq: int) -> bytes:
    """One record of a tap."""
    time, number = (n.to_bytes(8, "little") for n in (time_ms, seq))
    return msgspec.msgpack.encode(TapDigest(time, number, b"", b""))


def test_a_view_is_kept_with_its_version_and_told_whole() -> None:
    """The output row holds the same totals as the state."""
    state = a_state()
    (output,) = make_fold()((TAP,), rows(tap_digest(1_000, 1), clock_ms=2_000), state)
    version, data = state.get
    assert version == blob.VERSION
    assert output["totals"][0] == blob.totals_part(data)
    totals = blob.unpack_totals(output["totals"][0], TapTotals)
    assert totals.last_seen_ms == 1_000
    assert state.oldTimeoutTimestamp == -1


def test_a_deadline_fires_just_when_the_clock_has_passed_it() -> None:
    """The timeout is such that the watermark T - 1 passes it when T passes D."""
    state = a_state()
    digests = tap_digest(1_000, 1), tap_digest(2_000, 3)
    list(make_fold()((TAP,), rows(*digests, clock_ms=2_000), state))
    deadline_ms = 2_000 + 15_000
    assert state._timeout_timestamp == deadline_ms - 1  # noqa: SLF001 - what Spark reads
    # Spark calls when the timeout lies before the watermark T - 1.
    clock_ms = deadline_ms + 1
    fired = a_state(tuple(state.get), watermark_ms=clock_ms - 1, timed_out=True)
    (output,) = make_fold()((TAP,), iter([]), fired)
    totals = blob.unpack_totals(output["totals"][0], TapTotals)
    assert totals.missing_records == 1


def test_dead_letters_leave_once() -> None:
    """Where each lies goes out with the batch that found it."""
    key = make_key(KeyKind.DEAD_LETTERS, "0")
    letter = DeadLetter(0, 17, "empty_value")
    digest = msgspec.msgpack.encode(DeadLetterDigest([letter]))
    state = a_state()
    (output,) = make_fold()((key,), rows(digest, clock_ms=1), state)
    details = msgspec.msgpack.decode(output["details"][0], type=list[DeadLetter])
    assert details == [letter]
    (again,) = make_fold()((key,), rows(clock_ms=2), a_state(tuple(state.get)))
    assert msgspec.msgpack.decode(again["details"][0]) == []
    totals = blob.unpack_totals(again["totals"][0], DeadLetterTotals)
    assert totals.by_reason == {"empty_value": 1}


def test_the_clock_row_keeps_no_state() -> None:
    """It is there to move the watermark."""
    state = a_state()
    key = make_key(KeyKind.CLOCK)
    assert list(make_fold()((key,), rows(b"", clock_ms=1), state)) == []
    assert not state.exists


def test_state_of_a_newer_release_is_refused() -> None:
    """The error says what to do."""
    state = a_state((blob.VERSION + 1, b""))
    with pytest.raises(blob.UnknownBlobVersion, match="run the release that wrote it"):
        list(make_fold()((TAP,), rows(clock_ms=1), state))
