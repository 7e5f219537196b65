"""What becomes of a gap (docs/figures.md, 6)."""

from __future__ import annotations

import pytest

from sds_core.observer.histogram import BUCKETS_MS
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect
from tests.support.channel import START_LAMPORT, Channel
from tests.support.frames import Record
from tests.support.observer.gaps import NAMED, OVERDUE, SETTLED, outcomes


@pytest.fixture
def gap(channel: Channel) -> Channel:
    """The channel with the gap `x` of sue, named by sue at 70 s, and open."""
    channel.sync("sue", at=NAMED, history=["anchor", ("x", "sue")])
    channel.clock(SETTLED)
    assert channel.totals.gaps_open == 1
    return channel


# Outcomes.


@pytest.mark.parametrize(
    ("at", "found"),
    [(OVERDUE, {"late": 1}), (OVERDUE + 1, {"lost": 1, "retracted": 1})],
)
def test_arrival_at_the_deadline_is_in_time(
    gap: Channel, at: int, found: dict[str, int]
) -> None:
    """At 300 s the gap is filled; a millisecond later it was lost."""
    gap.content("x", "sue", at=at)
    assert outcomes(gap) == found
    assert gap.totals.gaps_open == 0


def test_filled_gap_has_the_duration_from_its_first_naming(gap: Channel) -> None:
    """The duration is in event time."""
    gap.content("x", "sue", at=NAMED + 4_000)
    assert gap.totals.gap_duration.sum_ms == 4_000
    assert gap.totals.gap_duration.counts[BUCKETS_MS.index(5_000)] == 1


def test_gap_filled_by_a_late_record_has_its_own_time(gap: Channel) -> None:
    """A second tap may be behind the clock; the duration is never negative."""
    gap.clock(NAMED + 100_000)
    gap.content("x", "sue", at=NAMED - 10_000)
    assert outcomes(gap) == {"late": 1}
    assert gap.totals.gap_duration.sum_ms == 0
    assert gap.totals.gap_duration.count == 1


@pytest.mark.parametrize(
    ("dialect", "window_ms"), [(Dialect.SPEC, 135_000), (Dialect.NIM, 315_000)]
)
def test_gap_filled_within_the_repair_window_is_repaired(
    gap: Channel, dialect: Dialect, window_ms: int
) -> None:
    """The window depends on the request's dialect and includes its end."""
    asked = NAMED - 20_000 if dialect is Dialect.NIM else NAMED + 5_000
    gap.sync("bob", at=asked, requests=["x"], dialect=dialect)
    # A late request acts from the clock on.
    asked = max(asked, SETTLED)
    gap.content("x", "sue", at=min(asked + window_ms, OVERDUE))
    assert outcomes(gap) == {"repaired": 1}


def test_gap_filled_after_the_repair_window_is_recovered_late(gap: Channel) -> None:
    """A millisecond after the window the request is no longer live."""
    gap.sync("bob", at=NAMED + 5_000, requests=["x"])
    gap.content("x", "sue", at=NAMED + 140_001)
    assert outcomes(gap) == {"recovered_late": 1}
    assert gap.totals.repair_responses == 0


def test_request_before_the_naming_counts(channel: Channel) -> None:
    """A gap is late only if there never was a request."""
    channel.sync("bob", at=NAMED - 5_000, requests=["x"])
    channel.sync("bob", at=NAMED, history=["anchor", "x"])
    channel.content("x", "sue", at=NAMED + 3_000)
    assert outcomes(channel) == {"repaired": 1}


def test_old_request_makes_a_gap_recovered_late(channel: Channel) -> None:
    """A request long before the gap counts as a request."""
    channel.sync("bob", at=61_000, requests=["x"])
    channel.sync("sue", at=61_000 + 200_000, history=["anchor", "x"])
    channel.content("x", "sue", at=61_000 + 210_000)
    assert outcomes(channel) == {"recovered_late": 1}


def test_request_for_another_id_leaves_a_gap_late(gap: Channel) -> None:
    """Only requests for this id count."""
    gap.sync("bob", at=NAMED + 5_000, requests=["y"])
    gap.content("x", "sue", at=NAMED + 6_000)
    assert outcomes(gap) == {"late": 1}


def test_silence_reaches_the_deadline_by_the_clock_alone(gap: Channel) -> None:
    """At 300 s the gap is open, a millisecond later it is lost."""
    gap.clock(OVERDUE)
    assert outcomes(gap) == {}
    gap.clock(OVERDUE + 1)
    assert outcomes(gap) == {"lost": 1}
    assert gap.totals.gaps_open == 0


def test_late_naming_has_its_deadlines_from_the_clock(channel: Channel) -> None:
    """The effective time of a record older than the clock is the clock."""
    channel.clock(100_000)
    channel.sync("bob", at=70_000, history=["anchor", "x"])
    channel.clock(102_000)
    assert channel.totals.gaps_opened == 0
    channel.clock(102_001)
    assert channel.totals.gaps_opened == 1
    channel.clock(400_000)
    assert channel.totals.gaps_open == 1
    channel.clock(400_001)
    assert channel.totals.gaps_open == 0


# Lost, or missed by the tap.


def test_naming_by_another_makes_a_tap_gap(gap: Channel) -> None:
    """A participant other than its sender received it from the network."""
    gap.sync("bob", at=NAMED + 10_000, history=["x"])
    gap.clock(OVERDUE + 1)
    assert outcomes(gap) == {"tap_gap": 1}


def test_opening_by_another_makes_a_tap_gap(channel: Channel) -> None:
    """The naming that opens the gap is evidence."""
    channel.sync("bob", at=NAMED, history=["anchor", ("x", "sue")])
    channel.clock(OVERDUE + 1)
    assert outcomes(channel) == {"tap_gap": 1}


def test_filter_of_another_makes_a_tap_gap(gap: Channel) -> None:
    """A filter that holds the id is evidence, like a history."""
    gap.sync("bob", at=NAMED + 10_000, holds=["x"])
    gap.clock(OVERDUE + 1)
    assert outcomes(gap) == {"tap_gap": 1}


def test_only_its_sender_leaves_it_lost(gap: Channel) -> None:
    """The sender has the message in any case."""
    gap.sync("sue", at=NAMED + 10_000, history=["x"], holds=["x"])
    gap.sync("bob", at=NAMED + 10_000, holds=["other"], requests=["x"])
    gap.sync("", at=NAMED + 11_000, history=["x"], holds=["x"])
    gap.clock(OVERDUE + 1)
    assert outcomes(gap) == {"lost": 1}


@pytest.mark.parametrize(("late_ms", "outcome"), [(0, "tap_gap"), (1, "lost")])
def test_evidence_counts_up_to_the_deadline(
    gap: Channel, late_ms: int, outcome: str
) -> None:
    """Evidence at the deadline counts; later evidence changes no outcome."""
    gap.sync("bob", at=OVERDUE + late_ms, history=["x"], holds=["x"])
    gap.clock(OVERDUE + 10)
    assert outcomes(gap) == {outcome: 1}


@pytest.mark.parametrize(
    ("others", "outcome"), [([], "lost"), (["bob"], "lost"), (["sue"], "tap_gap")]
)
@pytest.mark.parametrize("evidence", ["history", "holds"])
def test_unknown_sender_takes_two_distinct_participants(
    channel: Channel, others: list[str], outcome: str, evidence: str
) -> None:
    """One of them may be the sender."""
    channel.sync("bob", at=NAMED, history=["anchor", "x"], holds=["x"])
    for other in others:
        channel.sync(other, at=NAMED + 10_000, **{evidence: ["x"]})
    channel.clock(OVERDUE + 1)
    assert outcomes(channel) == {outcome: 1}


def test_sender_named_later_is_known_from_then_on(channel: Channel) -> None:
    """One other participant is then enough."""
    channel.sync("bob", at=NAMED, history=["anchor", "x"])
    channel.sync("sue", at=NAMED + 5_000, history=["anchor", ("x", "sue")])
    channel.clock(OVERDUE + 1)
    assert outcomes(channel) == {"tap_gap": 1}


@pytest.mark.parametrize("is_divided", [False, True])
def test_gap_whose_sender_is_named_later_hides_no_older_gap(is_divided: bool) -> None:
    """One witness is then enough, so filters need not be searched for it any more."""
    channel = Channel.after_warm_up(ObserverSettings(searched=1))
    frames = channel.frames
    records = [
        Record(60_000, frames.content("anchor", "anna", START_LAMPORT + 1)),
        Record(NAMED, frames.sync("bob", history=["anchor", "old"])),
        Record(NAMED + 1, frames.sync("bob", history=["anchor", "new"])),
        Record(NAMED + 2, frames.sync("bob", history=[("new", "sue")])),
        Record(NAMED + 3, frames.sync("carol", holds=["old"])),
    ]
    for batch in [[record] for record in records] if is_divided else [records]:
        channel.take_records(batch)
    channel.clock(OVERDUE + 10)
    assert outcomes(channel) == {"tap_gap": 2}
    assert channel.totals.left_out == {}


def test_witness_that_turns_out_to_be_the_sender_does_not_count(
    channel: Channel,
) -> None:
    """That the sender has the message proves nothing."""
    channel.sync("sue", at=NAMED, history=["anchor", "x"])
    channel.sync("sue", at=NAMED + 5_000, history=["anchor", ("x", "sue")])
    channel.clock(OVERDUE + 1)
    assert outcomes(channel) == {"lost": 1}


def test_requester_with_an_unusable_filter_shows_nothing(gap: Channel) -> None:
    """A filter of wrong length gives no evidence."""
    gap.sync("bob", at=NAMED + 10_000, filter_=b"\xff" * 100)
    gap.clock(OVERDUE + 1)
    assert outcomes(gap) == {"lost": 1}


@pytest.mark.parametrize("copy", ["duplicate", "replica"])
def test_copy_of_a_record_names_no_sender(channel: Channel, copy: str) -> None:
    """Further copies are ignored, also in the batch of their broadcast."""
    numbers = ("tap", 1, 11) if copy == "duplicate" else ("", None, 11)
    frames = channel.frames
    channel.take_records(
        [
            Record(NAMED, frames.sync("bob", history=["anchor", "x"]), *numbers),
            Record(NAMED, frames.sync("sue", history=[("x", "sue")]), *numbers),
        ]
    )
    channel.clock(OVERDUE + 1)
    assert outcomes(channel) == {"lost": 1}


# Retraction.


def test_arrival_after_the_loss_retracts_it(gap: Channel) -> None:
    """The loss stays counted, and the retraction is counted once."""
    gap.clock(OVERDUE + 1)
    frame = gap.content("x", "sue", at=OVERDUE + 60_000, waku_hash="1")
    gap.take(frame, at=OVERDUE + 61_000, waku_hash="2")
    assert outcomes(gap) == {"lost": 1, "retracted": 1}
    assert gap.totals.gap_duration.count == 0


def test_arrival_after_a_tap_gap_retracts_nothing(gap: Channel) -> None:
    """It was not counted as lost."""
    gap.sync("bob", at=NAMED + 10_000, history=["x"])
    gap.clock(OVERDUE + 1)
    gap.content("x", "sue", at=OVERDUE + 60_000)
    assert outcomes(gap) == {"tap_gap": 1}


@pytest.mark.parametrize(("later_ms", "retracted"), [(0, 1), (1, 0)])
def test_losses_are_retracted_within_the_horizon(
    gap: Channel, later_ms: int, retracted: int
) -> None:
    """Up to 3600 s after the gap's first naming."""
    gap.sync("sue", at=3_000_000, history=["x"])  # Keeps it remembered.
    gap.content("x", "sue", at=NAMED + 3_600_000 + later_ms)
    assert gap.totals.gaps_retracted == retracted


def test_lost_id_named_again_opens_no_second_gap(gap: Channel) -> None:
    """An id is counted once."""
    gap.sync("bob", at=OVERDUE + 1, history=["anchor", "x"])
    gap.clock(OVERDUE * 3)
    assert gap.totals.gaps_opened == 1


def test_id_is_no_gap_again_once_it_came(gap: Channel) -> None:
    """A filled gap stays filled."""
    gap.content("x", "sue", at=NAMED + 4_000)
    gap.sync("bob", at=NAMED + 5_000, history=["anchor", "x"])
    gap.clock(OVERDUE + 5_001)
    assert gap.totals.gaps_opened == 1
    assert outcomes(gap) == {"late": 1}
