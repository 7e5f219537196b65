"""A silent channel is forgotten, by the channel's clock alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import msgspec
import pytest

from sds_core.metrics import MetricKind
from sds_core.observer import blob
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.histogram import Histogram
from sds_core.observer.sds.channel_state import BLOB_VERSION
from sds_core.observer.sds.channel_view import ChannelEvent, ChannelView
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelMinute, ChannelTotals, remains_of
from sds_core.observer.settings import DEFAULTS
from tests.support.channel import digest_of
from tests.support.frames import START_MS, FrameFactory, Record

DAY_MS = 86_400_000
SETTINGS = replace(DEFAULTS, forget_ms=7 * DAY_MS)


def record(at: int, message_id: str) -> Record:
    """A message of alice."""
    return Record(at, FrameFactory().content(message_id, "alice", 1_000 + at))


def applied(view: ChannelView, *records: Record, clock_ms: int) -> list[ChannelEvent]:
    """What a batch with these records returns; the clock is in ms since the start."""
    digests = [digest_of((one, one.at) for one in records)] if records else []
    return view.apply(digests, START_MS + clock_ms)


def ends(events: list[ChannelEvent]) -> list[ChannelTotals]:
    """The last figures of each channel that was forgotten."""
    return [
        blob.unpack_totals(one.totals, ChannelTotals)
        for one in events
        if isinstance(one, Forgotten)
    ]


def test_channel_is_forgotten_once_the_clock_has_passed_the_days() -> None:
    """A record at exactly that time is in time; the deadline says when to call."""
    view = ChannelView(SETTINGS)
    applied(view, record(0, "a"), clock_ms=0)
    while (deadline_ms := view.next_deadline_ms) != START_MS + 7 * DAY_MS:
        assert deadline_ms is not None
        assert ends(view.apply([], deadline_ms + 1)) == []
    assert ends(applied(view, clock_ms=7 * DAY_MS)) == []
    assert not view.is_forgotten
    (last,) = ends(applied(view, clock_ms=7 * DAY_MS + 1))
    assert last.messages == 1
    assert last.clock_ms == START_MS + 7 * DAY_MS
    assert view.is_forgotten
    assert view.next_deadline_ms is None
    assert view.totals == ChannelTotals(clock_ms=START_MS + 7 * DAY_MS + 1)


def test_channel_that_returns_is_new() -> None:
    """Its figures begin at zero, and it warms up."""
    view, new = ChannelView(SETTINGS), ChannelView(SETTINGS)
    applied(view, record(0, "a"), clock_ms=9 * DAY_MS)
    returning = record(10 * DAY_MS, "a")
    applied(view, returning, clock_ms=10 * DAY_MS)
    applied(new, returning, clock_ms=10 * DAY_MS)
    assert view.totals == new.totals
    assert view.to_blob() == new.to_blob()


def test_zero_days_forget_nothing() -> None:
    """The default of the view: the job sets the days."""
    view = ChannelView()
    assert ends(applied(view, record(0, "a"), clock_ms=1_000 * DAY_MS)) == []
    assert not view.is_forgotten


@pytest.mark.parametrize("cuts", range(4))
def test_the_cut_into_batches_does_not_matter(cuts: int) -> None:
    """Also if a silence begins and ends within one batch."""
    times = [0, 1_000, 8 * DAY_MS, 15 * DAY_MS, 22 * DAY_MS + 1, 22 * DAY_MS + 5_000]
    records = [record(at, f"m{at}") for at in times]
    expected: list[ChannelEvent] | None = None
    for places in combinations(range(1, len(records)), cuts):
        view, events = ChannelView(SETTINGS), []
        edges = [0, *places, len(records)]
        for first, end in pairwise(edges):
            batch = records[first:end]
            view = ChannelView.from_blob(BLOB_VERSION, view.to_blob(), SETTINGS)
            events += applied(view, *batch, clock_ms=batch[-1].at)
        events += applied(view, clock_ms=40 * DAY_MS)
        assert view.is_forgotten
        assert [one.messages for one in ends(events)] == [2, 2, 2]
        assert expected in (None, events)
        expected = events


def test_last_minute_is_emitted_by_request() -> None:
    """In the minute before, since the running one may be that of a new channel."""
    view = ChannelView(SETTINGS)
    applied(view, record(0, "a"), record(61_000, "b"), clock_ms=61_500)
    *events, end = view.forget()
    (minute,) = [one for one in events if isinstance(one, ChannelMinute)]
    assert minute.minute_ms == (START_MS + 1_500) // 60_000 * 60_000
    assert [minute.totals] == ends([end])
    assert view.forget() == []


def test_channel_that_returns_at_once_does_not_replace_the_last_totals() -> None:
    """Of the minutes of a channel that begin at the same time the last one counts."""
    view = ChannelView(SETTINGS)
    events = applied(view, record(0, "a"), record(60_000, "b"), clock_ms=61_000)
    events += view.forget()
    events += applied(view, record(62_000, "c"), clock_ms=190_000)
    minutes = [one for one in events if isinstance(one, ChannelMinute)]
    latest = {one.minute_ms - START_MS // 60_000 * 60_000: one for one in minutes}
    messages = [latest[at].totals.messages for at in sorted(latest)]
    assert messages == [2, 1, *messages[2:]]
    assert set(messages[2:]) <= {1}


def test_late_record_ends_a_silence() -> None:
    """The channel's clock counts, not the time that the record bears."""
    view = ChannelView(SETTINGS)
    applied(view, record(0, "a"), clock_ms=0)
    late = digest_of([(record(5_000, "b"), 6 * DAY_MS)])
    view.apply([late], START_MS + 6 * DAY_MS)
    assert ends(applied(view, clock_ms=13 * DAY_MS)) == []
    assert len(ends(applied(view, clock_ms=13 * DAY_MS + 1))) == 1


def test_state_of_an_older_release_counts_from_its_last_record() -> None:
    """It did not store when the channel was heard."""
    view = ChannelView(SETTINGS)
    applied(view, record(0, "a"), record(5_000, "b"), clock_ms=DAY_MS)
    totals, state = blob.split(blob.verified(view.to_blob()))
    fields = msgspec.msgpack.decode(state)[:-1]
    packed = blob.pack(blob.unpack_totals(totals, ChannelTotals), fields)
    old = ChannelView.from_blob(BLOB_VERSION, packed, SETTINGS)
    assert ends(applied(old, clock_ms=7 * DAY_MS + 5_000)) == []
    assert len(ends(applied(old, clock_ms=7 * DAY_MS + 5_001))) == 1


def test_every_count_remains_and_no_gauge_does() -> None:
    """Of each metric that is exported for the sum of several channels."""
    totals = _filled()
    left = remains_of(totals)
    for metric in CHANNEL_FIGURES.metrics:
        if not metric.summable:
            continue
        before, after = dict(metric.samples(totals)), dict(metric.samples(left))
        if metric.kind is MetricKind.GAUGE:
            assert not any(after.values()), metric.name
        else:
            changed = {key for key, value in before.items() if after.get(key) != value}
            # What has not ended ends as if it had been evicted.
            assert changed <= {(), ("tap_gap",), ("incomplete",)}, metric.name
            if changed:
                assert metric.name in {
                    "sds_messages_unwitnessed_total",
                    "sds_dependency_gaps_closed_total",
                    "sds_segmented_messages_ended_total",
                }
    assert left.unwitnessed == totals.unwitnessed + totals.in_flight
    assert left.gaps_tap_gap == totals.gaps_tap_gap + totals.gaps_open
    ended = totals.segmented_incomplete + totals.segmented_open
    assert left.segmented_incomplete == ended


def _filled() -> ChannelTotals:
    """Totals in which each number, histogram and dictionary has a value of its own."""
    values: dict[str, Any] = {}
    for index, field in enumerate(msgspec.structs.fields(ChannelTotals), 3):
        if field.type is int:
            values[field.name] = index
        elif field.type is Histogram:
            values[field.name] = Histogram([index] * 13, index)
        elif field.type == dict[str, int]:
            values[field.name] = {"content.spec": index, "repair_request": index}
        elif str(field.type).startswith(
            ("typing.Annotated[int", "typing.Annotated[float")
        ):
            values[field.name] = index
    return ChannelTotals(**values)
