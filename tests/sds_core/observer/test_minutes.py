"""The minutes that a channel's view emits: which, when, with what figures."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.kafka.producer import TopicRecord
from connectors.simulator.records import simulated_records
from sds_core.observer.histogram import Histogram
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.sds.channel_state import BLOB_VERSION
from sds_core.observer.sds.channel_view import ChannelEvent, ChannelView
from sds_core.observer.sds.totals import ChannelMinute, ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth
from tests.support.channel import digest_of
from tests.support.frames import START_MS as TESTS_START_MS
from tests.support.frames import FrameFactory, Record, running_clocks
from tests.support.monitor import Monitor, batches
from tests.support.properties import CAREFUL
from tests.support.traffic import PAUSES_MS, Scene, play, scenes

START_MS = -(-TESTS_START_MS // MINUTE_MS) * MINUTE_MS
"""The first full minute of the time that the tests' records count from."""

OFFSET_MS = START_MS - TESTS_START_MS

GOLDEN = Path(__file__).parents[2] / "golden" / "blobs"

GAUGES = frozenset(
    {
        "in_flight",
        "gaps_open",
        "participants_lately",
        "epoch_messages_max",
        "segmented_open",
    }
)
"""Integers among the totals that may fall."""


def told(events: Iterable[ChannelEvent]) -> list[ChannelMinute]:
    """The minutes among a view's events."""
    return [event for event in events if isinstance(event, ChannelMinute)]


def starts(minutes: Iterable[ChannelMinute]) -> list[int]:
    """Where the minutes begin, ms since `START_MS`."""
    return [minute.minute_ms - START_MS for minute in minutes]


def at(time_ms: int, frame_of: FrameFactory, message_id: str = "m") -> Record:
    """A content message of alice at one tap, ms since `START_MS`."""
    return Record(OFFSET_MS + time_ms, frame_of.content(message_id, "alice"), "tap")


def fed(
    view: ChannelView, records: Sequence[Record], clock_ms: int, first_offset: int = 0
) -> list[ChannelMinute]:
    """The minutes told when a view takes records and the clock, since `START_MS`."""
    clocked = list(zip(records, running_clocks(records), strict=True))
    digests = [digest_of(clocked, first_offset)] if clocked else []
    return told(view.apply(digests, START_MS + clock_ms))


def test_view_without_records_emits_no_minute() -> None:
    """For any movement of the clock."""
    view = ChannelView()
    assert [fed(view, [], clock_ms) for clock_ms in (0, 59_999, 10**9)] == [[]] * 3


def lasting(totals: ChannelTotals) -> ChannelTotals:
    """Totals without what belongs to the moment: evidence, single participants."""
    return msgspec.structs.replace(
        totals, evidence=None, participant_table=b"", suspects=None
    )


def test_minute_is_emitted_when_the_clock_reaches_its_end() -> None:
    """With the totals at its end, without those of the moment; there is a deadline."""
    view = ChannelView()
    assert fed(view, [at(70_000, FrameFactory())], 119_999) == []
    assert view.next_deadline_ms == START_MS + 119_999
    (minute,) = fed(view, [], 120_000)
    assert minute.minute_ms == START_MS + 60_000
    assert minute.totals == lasting(view.totals)
    assert view.totals.participant_table
    assert minute.totals.clock_ms == START_MS + 120_000


def test_frame_at_the_end_belongs_to_the_next_minute() -> None:
    """One in the last millisecond belongs to this minute."""
    frames, view = FrameFactory(), ChannelView()
    records = [at(59_999, frames, "last"), at(60_000, frames, "first")]
    minutes = fed(view, records, 120_000)
    assert starts(minutes) == [0, 60_000]
    assert [minute.totals.messages for minute in minutes] == [1, 2]


@pytest.mark.parametrize(
    ("sent_ms", "minute_ms"), [(59_999, 120_000), (60_000, 180_000)]
)
def test_deadline_belongs_to_its_own_minute(sent_ms: int, minute_ms: int) -> None:
    """Even one in the last millisecond, which fires after the minute's end."""
    minutes = fed(ChannelView(), [at(sent_ms, FrameFactory())], 600_000)
    (ended,) = [
        minute.minute_ms - START_MS
        for before, minute in itertools.pairwise(minutes)
        if minute.totals.unwitnessed > before.totals.unwitnessed
    ]
    assert ended == minute_ms


def test_emitted_minute_does_not_change() -> None:
    """Later frames do not change its figures."""
    frames, view = FrameFactory(), ChannelView()
    (minute,) = fed(view, [at(0, frames)], 60_000)
    before = msgspec.msgpack.encode(minute)
    fed(view, [at(61_000, frames, "n")], 10**7, first_offset=1)
    assert msgspec.msgpack.encode(minute) == before


def test_minutes_without_change_are_not_emitted() -> None:
    """Over ten years, only minutes in which a wait ended."""
    view, ten_years_ms = ChannelView(), 10 * 365 * 86_400_000
    minutes = fed(view, [at(0, FrameFactory())], ten_years_ms)
    figures = [msgspec.structs.replace(minute.totals, clock_ms=0) for minute in minutes]
    assert all(one != other for one, other in itertools.pairwise(figures))
    assert len(minutes) < 8
    assert minutes[-1].minute_ms < START_MS + 30 * MINUTE_MS
    assert view.next_deadline_ms is None


def test_gauge_that_falls_by_itself_is_in_its_minute() -> None:
    """A participant counts for ten minutes after its last frame."""
    minutes = fed(ChannelView(), [at(30_000, FrameFactory())], 10**7)
    lately = {
        minute.minute_ms - START_MS: minute.totals.participants_lately
        for minute in minutes
    }
    assert lately[0] == 1
    assert lately[600_000] == 0
    assert set(lately.values()) == {0, 1}


def test_replayed_records_change_no_minute() -> None:
    """A minute with duplicates only is not emitted."""
    frame = FrameFactory().sync("alice")
    first = Record(OFFSET_MS, frame, "tap", 1)
    again = first._replace(at=OFFSET_MS + 65_000)
    steady, view = ChannelView(), ChannelView()
    expected = fed(steady, [first], 120_000)
    assert starts(expected) == [0]
    assert fed(view, [first, again], 120_000) == expected


def test_current_minute_continues_after_a_restart() -> None:
    """It is emitted once, at its end, with records before and after."""
    frames, view = FrameFactory(), ChannelView()
    fed(view, [at(1_000, frames)], 5_000)
    view = ChannelView.from_blob(BLOB_VERSION, view.to_blob())
    assert view.next_deadline_ms is not None
    (minute,) = fed(view, [at(31_000, frames, "n")], 60_000, first_offset=1)
    assert minute.totals.messages == 2
    view = ChannelView.from_blob(BLOB_VERSION, view.to_blob())
    assert fed(view, [], 119_999) == []


def test_deadline_before_the_clock_belongs_to_the_current_minute() -> None:
    """The clock does not go back, and no minute is emitted twice."""
    view = ChannelView()
    first = fed(view, [at(0, FrameFactory())], 100_000)
    shorter = ObserverSettings(ack_deadline_ms=10_000)
    again = ChannelView.from_blob(BLOB_VERSION, view.to_blob(), shorter)
    minutes = fed(again, [], 120_000)
    assert (starts(first), starts(minutes)) == ([0], [60_000])
    assert minutes[0].totals.unwitnessed == 1


@pytest.mark.parametrize("version", [1, 2])
def test_state_of_an_older_release_emits_its_totals_once(version: int) -> None:
    """They are in the minute of its clock."""
    data = (GOLDEN / f"v{version}" / "channel.nim.bin").read_bytes()
    view = ChannelView.from_blob(version, data)
    minute_ms = view.totals.clock_ms // MINUTE_MS * MINUTE_MS
    frames = dict(view.totals.frames)
    (minute,) = told(view.apply([], minute_ms + MINUTE_MS))
    assert minute.minute_ms == minute_ms
    assert minute.totals.frames == frames
    again = ChannelView.from_blob(BLOB_VERSION, view.to_blob())
    assert told(again.apply([], minute_ms + MINUTE_MS + 1)) == []


# Properties.


def figures_of(totals: ChannelTotals) -> ChannelTotals:
    """All that can change in a minute: not the clock, nor the names of taps."""
    return msgspec.structs.replace(totals, clock_ms=0, observers=[])


def minute_by_minute(
    records: Sequence[Record], end_ms: int
) -> tuple[list[ChannelMinute], list[ChannelMinute]]:
    """A view fed the records of one minute and clocked to its end, and so on.

    Returns:
        The minutes that it told, and those after which its figures were others.
    """
    view = ChannelView()
    found, expected = [], []
    clocked = list(zip(records, running_clocks(records), strict=True))
    taken, before = 0, figures_of(ChannelTotals())
    for until_ms in range(OFFSET_MS, end_ms + MINUTE_MS, MINUTE_MS):
        upto = taken
        while upto < len(clocked) and clocked[upto][1] < until_ms:
            upto += 1
        digests = [digest_of(clocked[taken:upto], taken)] if upto > taken else []
        taken = upto
        ended_ms = TESTS_START_MS + until_ms
        found += told(view.apply(digests, ended_ms))
        packed = msgspec.msgpack.encode(lasting(view.totals))
        totals = msgspec.msgpack.decode(packed, type=ChannelTotals)
        if figures_of(totals) != before:
            before = figures_of(totals)
            expected.append(ChannelMinute(ended_ms - MINUTE_MS, totals))
    return found, expected


def counters_of(totals: ChannelTotals) -> dict[str, int]:
    """All integers among the totals that count, by name."""
    counters: dict[str, int] = {}
    for field in msgspec.structs.fields(totals):
        value = getattr(totals, field.name)
        if isinstance(value, Histogram):
            counters |= {f"{field.name} {n}": c for n, c in enumerate(value.counts)}
            counters[f"{field.name} sum"] = value.sum_ms
        elif field.name == "frames":
            counters |= value
        elif field.type is int and field.name not in GAUGES:
            counters[field.name] = value
    return counters


@pytest.mark.slow
@settings(CAREFUL, max_examples=CAREFUL.max_examples // 2)
@given(scenes(PAUSES_MS), st.sampled_from((0, 1, 120_001, 700_000)))
def test_minute_is_emitted_exactly_if_a_figure_changed(
    scene: Scene, pause_ms: int
) -> None:
    """Its totals are those of a view that read only records before its end."""
    records = play(scene)
    end_ms = max((record.at for record in records), default=0) + pause_ms
    end_ms += MINUTE_MS - (end_ms - OFFSET_MS) % MINUTE_MS
    clocked = list(zip(records, running_clocks(records), strict=True))
    found = told(ChannelView().apply([digest_of(clocked)], TESTS_START_MS + end_ms))
    stepwise, expected = minute_by_minute(records, end_ms)
    assert found == expected
    assert stepwise == expected


@pytest.mark.slow
@settings(CAREFUL, max_examples=CAREFUL.max_examples // 5)
@given(scenes(PAUSES_MS))
def test_counters_never_fall_from_minute_to_minute(scene: Scene) -> None:
    """They are absolute."""
    records = play(scene)
    clocked = list(zip(records, running_clocks(records), strict=True))
    minutes = told(ChannelView().apply([digest_of(clocked)], TESTS_START_MS + 10**9))
    for before, after in itertools.pairwise(minutes):
        assert before.minute_ms < after.minute_ms
        counted = counters_of(after.totals)
        fallen = {
            name: (value, counted[name])
            for name, value in counters_of(before.totals).items()
            if counted[name] < value
        }
        assert fallen == {}


LOSSY = Scenario.from_mapping(
    {
        "name": "minutes",
        "description": "two channels on a lossy network",
        "duration_s": 600,
        "participants": 4,
        "channels": [
            {
                "name": "channel",
                "count": 2,
                "participants": 4,
                "traffic": {"mean_interval_s": 20},
            }
        ],
        "network": {"loss": 0.1},
        "taps": [{"name": "tap"}],
    }
)


@pytest.fixture(scope="module")
def topic() -> list[TopicRecord]:
    """Records of a lossy simulation."""
    truth = Truth(LOSSY.name, 1)
    return list(simulated_records(LOSSY, 1, TESTS_START_MS, 2, truth))


def minutes_of(
    records: Sequence[TopicRecord], size: int | None = None, restarts: bool = False
) -> dict[str, list[ChannelMinute]]:
    """The minutes told by channel when a topic is read in batches."""
    monitor = Monitor(restarts)
    for batch in batches(records, size):
        monitor.read(*batch)
    return monitor.minutes


@pytest.mark.parametrize(
    ("size", "restarts", "twice"),
    [(1, False, False), (7, True, False), (100, True, True)],
)
def test_minutes_do_not_depend_on_how_a_topic_is_read(
    topic: list[TopicRecord], size: int, restarts: bool, twice: bool
) -> None:
    """In any batches, with restarts, and with every record read twice."""
    expected = minutes_of(topic)
    assert [len(minutes) >= 9 for minutes in expected.values()] == [True, True]
    records = [record for record in topic for _ in range(1 + twice)]
    assert minutes_of(records, size, restarts) == expected
