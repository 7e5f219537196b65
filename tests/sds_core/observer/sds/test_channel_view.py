"""A channel's view as a whole: time, batches, and a slow reference beside it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sds_core.observer import blob
from sds_core.observer.histogram import Histogram
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from sds_core.observer.sds.channel_state import BLOB_VERSION
from sds_core.observer.sds.channel_view import ChannelEvent, ChannelView
from sds_core.observer.sds.digest import ChannelDigest
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelMinute, ChannelTotals
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.wire import Dialect, Frame
from tests.support.channel import (
    Channel,
    Incidents,
    assert_identities,
    digest_of,
    parted,
)
from tests.support.frames import START_MS, FrameFactory, Record, running_clocks
from tests.support.properties import CAREFUL
from tests.support.reference import Reference
from tests.support.traffic import LONG_PAUSES_MS, Scene, play, scenes

LIMITS = st.sampled_from([1, 2, 4, DEFAULTS.remembered, DEFAULTS.remembered])
"""How many entries each memory has room for: so few that they fill, or enough."""

END_PAUSES_MS = (0, 1, 2_001, 30_000, 120_001, 135_001, 300_001, 600_000, 700_000)


# By hand: time.


def test_view_without_records_knows_nothing() -> None:
    """It is warming up and has no deadline."""
    view = ChannelView()
    view.apply([], START_MS)
    assert view.totals == ChannelTotals(clock_ms=START_MS)
    assert view.next_deadline_ms is None


def test_clock_never_goes_back() -> None:
    """An earlier admission time is ignored, like the time of a late record."""
    channel = Channel()
    channel.clock(5_000)
    channel.clock(4_000)
    assert channel.totals.clock_ms == START_MS + 5_000
    channel.sync("alice", at=1_000)
    assert channel.totals.clock_ms == START_MS + 5_000


def test_records_move_the_clock_before_the_admission_time_does() -> None:
    """The clock is the greater of the two."""
    channel = Channel()
    channel.sync("alice", at=9_000)
    channel.clock(3_000)
    assert channel.totals.clock_ms == START_MS + 9_000


def test_deadlines_fire_before_a_later_frame_is_applied() -> None:
    """A frame that moves the clock past a deadline is too late for it."""
    channel = Channel.after_warm_up()
    channel.content("m", "alice", at=60_000)
    channel.sync("bob", at=60_001, lamport=2_000)
    channel.sync("bob", at=180_001, history=["m"])
    assert channel.totals.unacknowledged == 1
    assert channel.totals.acknowledged_in_time == 0


def test_duplicate_moves_the_clock_all_the_same() -> None:
    """Nothing else about it counts."""
    channel = Channel.after_warm_up()
    frame = channel.content("m", "alice", at=60_000, observer="tap", seq=1)
    channel.take(frame, at=180_001, observer="tap", seq=1)
    assert channel.totals.unwitnessed == 1
    assert channel.totals.last_event_ms == START_MS + 60_000


@pytest.mark.parametrize("dialect", Dialect)
def test_idle_channel_has_no_deadline_in_the_end(dialect: Dialect) -> None:
    """Called at its deadlines only, it finally has none."""
    channel = Channel(dialect=dialect)
    channel.sync("", at=0, lamport=1)
    channel.content("anchor", "anna", at=40_000, lamport=2)
    channel.content("last", "anna", at=41_000, lamport=3)
    channel.sync(
        "bob", at=42_000, lamport=4, history=["anchor", ("x", "bob")], requests=["y"]
    )
    wakes = 0
    while channel.next_deadline_ms is not None:
        channel.wake()
        wakes += 1
    assert wakes < 20
    totals = channel.totals
    assert (totals.in_flight, totals.gaps_open) == (0, 0)
    assert (totals.unacknowledged, totals.gaps_lost, totals.repair_expired) == (1, 1, 1)
    assert channel.verdict == ("quiet", "quiet")


def test_next_deadline_is_the_earliest() -> None:
    """End of minute and warm-up, settle time, message, repair, epoch and gap."""
    channel = Channel()
    channel.sync("", at=0, lamport=1)
    assert channel.next_deadline_ms == 19_999
    channel.clock(20_000)
    assert channel.next_deadline_ms == 29_999
    channel.clock(40_000)
    assert channel.next_deadline_ms == 79_999
    channel.content("anchor", "anna", at=40_000, lamport=2)
    assert channel.next_deadline_ms == 79_999
    channel.sync("bob", at=41_000, history=["anchor", "x"], requests=["x"])
    assert channel.next_deadline_ms == 43_000
    channel.clock(43_001)
    assert channel.next_deadline_ms == 79_999
    channel.clock(80_000)
    assert channel.next_deadline_ms == 160_000
    channel.clock(160_001)
    assert channel.next_deadline_ms == 41_000 + 135_000
    channel.clock(176_001)
    epoch_end_ms = -(-START_MS // 600_000) * 600_000 - START_MS
    assert channel.next_deadline_ms == epoch_end_ms - 1
    channel.clock(epoch_end_ms)
    assert channel.next_deadline_ms == 41_000 + 300_000
    channel.clock(341_001)
    assert channel.next_deadline_ms == 379_999
    channel.clock(380_000)
    assert channel.next_deadline_ms == 40_000 + 600_000


def test_frames_of_two_partitions_are_taken_by_their_clocks() -> None:
    """Partition and offset decide only for equal clocks."""
    frames = Channel().frames
    first = [Record(0, frames.sync("", 1)), Record(40_000, frames.sync("", 1))]
    m = Record(60_000, frames.content("m", "alice"))
    ack = Record(61_000, frames.sync("bob", history=["m"]))
    digests = [
        digest_of([(r, r.at) for r in (*first, ack)], partition=1),
        digest_of([(m, m.at)], partition=0),
    ]
    for order in (digests, digests[::-1]):
        view = ChannelView()
        view.apply(order, START_MS + 61_000)
        assert view.totals.definite_latency.sum_ms == 1_000


def test_sender_named_later_in_a_batch_does_not_act_backwards() -> None:
    """An entry names a sender from its own frame on, for any batches."""
    frames = FrameFactory()
    records = [
        Record(0, frames.sync("", 100)),
        Record(60_000, frames.content("anchor", "anna", 101)),
        Record(70_000, frames.sync("bob", 102, history=["anchor", "x"])),
        Record(370_001, frames.sync("sue", 103, history=[("x", "sue")])),
    ]
    cut = ChannelView()
    for offset, record in enumerate(records):
        cut.apply([digest_of([(record, record.at)], offset)], START_MS)
    totals = at_once(records, 370_001).totals
    assert (totals.gaps_lost, totals.gaps_tap_gap) == (1, 0)
    assert totals == cut.totals


def test_participants_are_bounded_by_the_limit() -> None:
    """Further names count as unknown, and the state does not grow."""
    limits = ObserverSettings(remembered=3)
    sizes = []
    for named in (10, 200):
        frames = FrameFactory()
        history = [(f"x{number}", f"p{number:03}") for number in range(named)]
        records = [
            Record(0, frames.sync("bob", history=history)),
            *(Record(1, frames.sync(f"q{number:03}")) for number in range(named)),
        ]
        view = ChannelView(limits)
        clocked = [(record, record.at) for record in records]
        view.apply([digest_of(clocked)], START_MS + 10_000_000)
        assert view.totals.participants == 1
        sizes.append(len(view.to_blob()))
    assert sizes[1] - sizes[0] < 20


def test_full_memory_forgets_before_the_next_deadline() -> None:
    """It does not wait for the next frame or the end of the batch."""
    frames = FrameFactory()
    limits = ObserverSettings(remembered=2)
    records = [
        Record(0, frames.content("m0", "alice", 1)),
        Record(0, frames.content("m1", "alice", 1)),
        Record(1, frames.content("m2", "bob", 2)),
    ]
    cut = ChannelView(limits)
    for offset, record in enumerate(records):
        cut.apply([digest_of([(record, record.at)], offset)], START_MS + record.at)
    cut.apply([], START_MS + 120_002)
    totals = at_once(records, 120_002, limits).totals
    assert (totals.unacknowledged, totals.unwitnessed) == (1, 2)
    assert totals == cut.totals


@pytest.mark.parametrize("frame_of", [FrameFactory.content, FrameFactory.sync])
def test_sweep_that_leaves_out_a_participant_is_in_its_minute(
    frame_of: Callable[..., Frame],
) -> None:
    """However the silence before the sweep is divided into batches."""
    frames, limits = FrameFactory(dialect=Dialect.NIM), ObserverSettings(followed=2)
    records = [
        Record(at, frame_of(frames, sender=sender, lamport=1, message_id=sender))
        for at, sender in ((0, "alice"), (1, "bob"), (61_000, "carol"))
    ]
    end_ms = 2 * limits.horizon_ms
    whole = at_once(records, end_ms, limits)
    last = whole.minutes[-1]
    assert last.totals.left_out == {"participant": 2}
    silent_ms = START_MS + 61_000 + limits.horizon_ms
    assert last.minute_ms == silent_ms // 60_000 * 60_000
    for between in (60_000, limits.horizon_ms + 61_001, limits.horizon_ms + 121_000):
        view, events = ChannelView(limits), []
        events += view.apply([digest_of([(one, one.at) for one in records])], START_MS)
        for clock_ms in (between, end_ms):
            view = ChannelView.from_blob(BLOB_VERSION, view.to_blob(), limits)
            events += view.apply([], START_MS + clock_ms)
        assert found(view, events) == whole
    view, events = ChannelView(limits), []
    events += view.apply([digest_of([(one, one.at) for one in records])], START_MS)
    while (deadline_ms := view.next_deadline_ms) is not None:
        events += view.apply([], deadline_ms + 1)
    events += view.apply([], START_MS + end_ms)
    assert found(view, events) == whole


# Properties.


def batch(
    records: list[tuple[Record, int]], first_offset: int, splits: Iterator[int]
) -> list[ChannelDigest]:
    """The records of one batch as the digests of its chunks, in any order."""
    chunks: list[ChannelDigest] = []
    begin = 0
    for end in range(1, len(records) + 1):
        if end == len(records) or next(splits) == 0:
            chunks.append(digest_of(records[begin:end], first_offset + begin))
            begin = end
    return chunks[::-1] if next(splits) % 2 else chunks


class Found(NamedTuple):
    """What a view finds in all records, for any batches."""

    totals: ChannelTotals
    report: dict[str, Any]
    acknowledged: list[DefiniteAcknowledgement]
    incidents: Incidents
    minutes: list[ChannelMinute]


def found(view: ChannelView, events: Iterable[ChannelEvent]) -> Found:
    """The figures of a view and all events that it returned."""
    minutes, others = [], []
    for event in events:
        if isinstance(event, ChannelMinute):
            minutes.append(event)
        else:
            others.append(event)
    return Found(
        view.totals, CHANNEL_FIGURES.report(view.totals), *parted(others), minutes
    )


def at_once(
    records: list[Record], end_ms: int, limits: ObserverSettings = DEFAULTS
) -> Found:
    """All records in one batch."""
    view = ChannelView(limits)
    clocked = list(zip(records, running_clocks(records), strict=True))
    events = view.apply([digest_of(clocked)], START_MS + end_ms)
    return found(view, events)


def in_batches(
    records: list[Record],
    end_ms: int,
    data: st.DataObject,
    limits: ObserverSettings = DEFAULTS,
) -> Found:
    """The records in batches, with blobs and clock-only calls between them."""
    clocked = list(zip(records, running_clocks(records), strict=True))
    size = 2 * len(records)
    drawn = data.draw(st.lists(st.integers(0, 7), min_size=size, max_size=size))
    cuts, splits = drawn[: len(records)], itertools.cycle(drawn[len(records) :] or [0])
    # One, seven, all or by chance.
    batch_size = data.draw(st.sampled_from((1, 7, 1_000, 0)))
    view, events = ChannelView(limits), []
    begin = 0
    for end, cut in enumerate(cuts, start=1):
        is_cut = end % batch_size == 0 if batch_size else cut <= 2
        if not is_cut and end < len(records):
            continue
        clock = clocked[end - 1][1]
        digests = batch(clocked[begin:end], begin, splits)
        # T is at most the record time up to which everything was read.
        admitted = START_MS + data.draw(st.sampled_from((0, clock)))
        events += view.apply(digests, admitted)
        begin = end
        assert_identities(view.totals)
        if cut < 2:
            view = ChannelView.from_blob(BLOB_VERSION, view.to_blob(), limits)
        following = clocked[end][1] if end < len(records) else end_ms
        if cut == 1 and following > clock:
            between = data.draw(st.integers(clock, following))
            events += view.apply([], START_MS + between)
            assert_identities(view.totals)
    events += view.apply([], START_MS + end_ms)
    return found(view, events)


@pytest.mark.slow
@CAREFUL
@given(scenes(LONG_PAUSES_MS), st.sampled_from(END_PAUSES_MS), LIMITS, st.data())
def test_cutting_the_records_into_batches_changes_nothing(
    scene: Scene, pause_ms: int, remembered: int, data: st.DataObject
) -> None:
    """Same totals, report, events and minutes, also if memories are full."""
    records = play(scene)
    end_ms = max((record.at for record in records), default=0) + pause_ms
    limits = ObserverSettings(remembered=remembered)
    cut = in_batches(records, end_ms, data, limits)
    assert cut == at_once(records, end_ms, limits)


@pytest.mark.slow
@CAREFUL
@given(scenes(LONG_PAUSES_MS), LIMITS)
def test_view_called_at_its_deadlines_is_never_behind(
    scene: Scene, remembered: int
) -> None:
    """Called at its deadlines, it has the figures of the next record's call."""
    records = play(scene)
    limits = ObserverSettings(remembered=remembered)
    end_ms = max((record.at for record in records), default=0) + 10_000_000
    view, events = ChannelView(limits), []
    clocks = [*running_clocks(records), end_ms]
    for offset, record in enumerate(records):
        clocked = [(record, clocks[offset])]
        events += view.apply([digest_of(clocked, offset)], START_MS + clocks[offset])
        while (deadline := view.next_deadline_ms) is not None:
            assert deadline >= view.totals.clock_ms
            if deadline >= START_MS + clocks[offset + 1]:
                break
            events += view.apply([], deadline + 1)
            assert_identities(view.totals)
    before_the_end = view.totals.verdict, view.totals.in_flight, view.totals.gaps_open
    assert view.next_deadline_ms is None
    assert view.apply([], START_MS + end_ms) == []
    after = view.totals.verdict, view.totals.in_flight, view.totals.gaps_open
    assert after == before_the_end
    assert found(view, events) == at_once(records, end_ms, limits)


@pytest.mark.slow
@CAREFUL
@given(scenes(max_steps=30), st.data())
def test_replayed_records_change_nothing(scene: Scene, data: st.DataObject) -> None:
    """A batch that Kafka delivers again consists of duplicates."""
    records = play(scene)
    end_ms = max((record.at for record in records), default=0)
    place = data.draw(st.integers(0, len(records)))
    twice = records[:place] + records[:place] + records[place:]
    assert at_once(twice, end_ms) == at_once(records, end_ms)


@pytest.mark.slow
@CAREFUL
@given(scenes(LONG_PAUSES_MS), LIMITS)
def test_blob_is_the_whole_view(scene: Scene, remembered: int) -> None:
    """After unpacking it packs to the same bytes, with the same totals."""
    records = play(scene)
    limits = ObserverSettings(remembered=remembered)
    view = ChannelView(limits)
    clocked = list(zip(records, running_clocks(records), strict=True))
    view.apply([digest_of(clocked)], START_MS)
    data = view.to_blob()
    again = ChannelView.from_blob(BLOB_VERSION, data, limits)
    assert again.totals == view.totals
    assert again.to_blob() == data
    assert blob.unpack_totals(blob.totals_part(data), ChannelTotals) == view.totals


def figures_of(totals: ChannelTotals) -> dict[str, Any]:
    """The totals as the reference gives them, with relative times."""
    found = {name: getattr(totals, name) for name in totals.__struct_fields__}
    for name in ("first_event", "last_event", "oldest_in_flight", "verdict_since"):
        at = found.pop(f"{name}_ms")
        found[name] = None if at is None else at - START_MS
    for name, value in found.items():
        if isinstance(value, Histogram):
            found[name] = (value.counts, value.sum_ms)
    worst = totals.bloom_worst
    found["bloom_worst"] = worst and (worst.bits_set, worst.m_bits, worst.k)
    found["verdict"] = (totals.verdict.value, found.pop("verdict_reason"))
    return found


def standing(incidents: Incidents) -> set[tuple[str, str, frozenset[str]]]:
    """Kind, message id and who lacks the message, of incidents that have not ended."""
    return {
        (
            one.kind.value,
            one.message_id,
            frozenset(one.lacking if one.kind is IncidentKind.UNDELIVERED else ()),
        )
        for one in incidents.values()
        if one.ended_ms is None
    }


@pytest.mark.slow
def test_figures_are_those_of_a_slow_reference() -> None:
    """Recomputed from the whole list of records, for every figure."""
    reached: set[str] = set()

    # More, since some figures are rarely reached.
    @settings(CAREFUL, max_examples=3 * CAREFUL.max_examples // 2)
    @given(scenes(), st.sampled_from(END_PAUSES_MS), st.data())
    def compare(scene: Scene, pause_ms: int, data: st.DataObject) -> None:
        records = play(scene, longest_ms=2_800_000)
        end_ms = max((record.at for record in records), default=0) + pause_ms
        cut = in_batches(records, end_ms, data)
        reference = Reference(records, end_ms)
        expected = reference.figures()
        figures = figures_of(cut.totals)
        assert {name: figures[name] for name in expected} == expected
        assert standing(cut.incidents) == reference.incidents()
        reached.update(name for name, value in expected.items() if value)
        reached.add(cut.totals.verdict_reason)
        reached.update(kind for kind, _ in cut.incidents)

    compare()
    assert reached >= set(Reference([], 0).figures()) | {
        "warming_up", "lost", "unacknowledged", "recovering", "repair_expired",
        "bloom_saturated", "quiet", "ok", "undelivered",
    }  # fmt: skip
