"""Missing dependencies in the truth (docs/figures.md, 6)."""

from __future__ import annotations

import pytest

from sds_core.message_channel.events import Cause
from sds_core.wire import Dialect
from tests.support.simulation.simulated import START_LAMPORT, Named, Simulated

T = 60_000
"""When an id is named that no tap has shown."""


def with_gap(*history: Named) -> Simulated:
    """Ben names an id of his own that no tap saw, `lost` if no other, at `T`."""
    it = Simulated.after_warm_up()
    it.content("anchor", "ana", at=T - 10_000)
    it.content("n", "ben", at=T, history=["anchor", *(history or [("lost", "ben")])])
    return it


@pytest.mark.parametrize(
    ("arrival", "gaps"),
    [
        (T + 2_000, {}),
        (T + 2_001, {"opened": 1, "late": 1}),
        (T + 300_000, {"opened": 1, "late": 1}),
        (T + 300_001, {"opened": 1, "lost": 1, "retracted": 1}),
        (T + 3_600_000, {"opened": 1, "lost": 1, "retracted": 1}),
        (T + 3_600_001, {"opened": 1, "lost": 1}),
    ],
)
def test_arrival_decides_by_its_time(arrival: int, gaps: dict[str, int]) -> None:
    """Settled, late, lost and retracted, each to the millisecond."""
    it = with_gap()
    it.content("lost", "ben", at=arrival)
    assert it.gaps() == gaps


@pytest.mark.parametrize(
    ("end", "gaps"),
    [
        (T + 2_000, {}),
        (T + 2_001, {"opened": 1, "open": 1}),
        (T + 300_000, {"opened": 1, "open": 1}),
        (T + 300_001, {"opened": 1, "lost": 1}),
    ],
)
def test_absence_decides_by_the_clock(end: int, gaps: dict[str, int]) -> None:
    """Heartbeats move it."""
    it = with_gap()
    it.heartbeat(at=end)
    assert it.gaps() == gaps


@pytest.mark.parametrize(
    ("arrival", "outcome"), [(145_000, "repaired"), (145_001, "recovered_late")]
)
def test_request_decides_between_repaired_and_recovered_late(
    arrival: int, outcome: str
) -> None:
    """The window of the latest request, of any participant, is 135 s."""
    it = with_gap()
    it.sync("cem", at=T + 5_000, requests=["lost"])
    it.sync("cem", at=T + 10_000, requests=["lost"])
    sent = it.content("lost", "ben", at=0, seen=False)
    it.again(sent, at=T + arrival, by="dov", cause=Cause.REPAIR)
    assert it.gaps() == {"opened": 1, outcome: 1}
    assert it.figures("gap_ms") == {"count": 1, "sum": arrival}
    assert it.figures("sender_side")["first_copies"]["repair"] == 1


def test_window_of_a_request_is_that_of_its_dialect() -> None:
    """315 s in nim-sds."""
    it = with_gap()
    it.sync("cem", at=T - 20_000, requests=["lost"], dialect=Dialect.NIM)
    it.content("lost", "ben", at=T + 295_000)
    assert it.gaps() == {"opened": 1, "repaired": 1}


def test_naming_by_another_participant_makes_a_tap_gap() -> None:
    """The network had it; ben's naming, which opens the gap, counts too."""
    it = with_gap(("lost", "cem"))
    it.heartbeat(at=T + 300_001)
    assert it.gaps() == {"opened": 1, "tap_gap": 1}


def test_naming_by_its_sender_alone_makes_it_lost() -> None:
    """Its own history is no evidence that others got it."""
    it = with_gap()
    it.sync("ben", at=T + 1_000, history=[("lost", "ben")])
    it.heartbeat(at=T + 300_001)
    assert it.gaps() == {"opened": 1, "lost": 1}


@pytest.mark.parametrize(("witness", "gap"), [("cem", "tap_gap"), ("ben", "lost")])
def test_filter_of_another_participant_makes_a_tap_gap(witness: str, gap: str) -> None:
    """The filter of its sender does not."""
    it = with_gap()
    it.receive(witness, "lost")
    it.sync(witness, at=T + 300_000)
    it.heartbeat(at=T + 300_001)
    assert it.gaps() == {"opened": 1, gap: 1}


def test_filter_after_the_deadline_does_not_count() -> None:
    """The message stays lost."""
    it = with_gap()
    it.receive("cem", "lost")
    it.sync("cem", at=T + 300_001)
    assert it.gaps() == {"opened": 1, "lost": 1}


@pytest.mark.parametrize(
    ("also", "gap"), [("cem", "tap_gap"), ("ben", "lost"), ("", "lost")]
)
def test_gap_of_unknown_sender_needs_two_participants(also: str, gap: str) -> None:
    """One of the two may be the sender."""
    it = with_gap("lost")
    it.sync(also, at=T + 1_000, history=["lost"])
    it.heartbeat(at=T + 300_001)
    assert it.gaps() == {"opened": 1, gap: 1}


def test_sender_may_be_named_later() -> None:
    """Then ben's naming is the sender's own."""
    it = with_gap("lost")
    it.sync("cem", at=T + 1_000, history=[("lost", "ben")])
    it.sync("ben", at=T + 2_000, history=["lost"])
    it.heartbeat(at=T + 300_001)
    assert it.gaps() == {"opened": 1, "tap_gap": 1}


def test_tap_gap_is_not_retracted() -> None:
    """A late arrival changes nothing."""
    it = with_gap(("lost", "cem"))
    it.content("lost", "cem", at=T + 400_000)
    assert it.gaps() == {"opened": 1, "tap_gap": 1}


def test_no_gap_opens_in_the_warm_up() -> None:
    """It ends 30 s after the first record; the first naming after it decides."""
    it = Simulated()
    it.content("anchor", "ana", at=0)
    it.sync("ben", at=30_000, history=["anchor", "lost"])
    it.heartbeat(at=100_000)
    assert it.gaps() == {}


@pytest.mark.parametrize(
    ("lamport", "dialect", "gaps"),
    [
        (START_LAMPORT, Dialect.SPEC, {}),
        (START_LAMPORT + 1, Dialect.SPEC, {"opened": 1, "open": 1}),
        (START_LAMPORT, Dialect.NIM, {}),
        (START_LAMPORT + 1, Dialect.NIM, {"opened": 1, "open": 1}),
    ],
)
def test_gap_needs_an_earlier_entry_seen_after_the_warm_up(
    lamport: int, dialect: Dialect, gaps: dict[str, int]
) -> None:
    """By Lamport timestamp, within the dialect."""
    it = Simulated.after_warm_up()
    it.content("anchor", "ana", at=T, lamport=lamport, dialect=dialect)
    it.sync("ben", at=T + 1_000, history=["anchor", "lost"], dialect=dialect)
    it.heartbeat(at=T + 10_000)
    assert it.gaps() == gaps


def test_id_before_the_start_is_never_counted() -> None:
    """Even if it is later named behind a message seen after the warm-up."""
    it = Simulated.after_warm_up()
    it.content("anchor", "ana", at=T)
    it.sync("ben", at=T + 1_000, history=["old", "anchor"])
    it.sync("ben", at=T + 2_000, history=["anchor", "old"])
    it.heartbeat(at=T + 400_000)
    assert it.gaps() == {}


def test_frame_that_names_itself_opens_no_gap() -> None:
    """Neither content nor sync."""
    it = with_gap("n")
    it.library_sync("sync", "cem", at=T, history=["anchor", "sync"])
    it.heartbeat(at=T + 10_000)
    assert it.gaps() == {}


def test_request_alone_opens_no_gap() -> None:
    """Only histories name dependencies."""
    it = Simulated.after_warm_up()
    it.content("anchor", "ana", at=T)
    it.sync("ben", at=T, requests=["lost"], history=["anchor"])
    it.heartbeat(at=T + 10_000)
    assert it.gaps() == {}


def test_time_of_a_gap_runs_from_its_first_naming() -> None:
    """Later namings change nothing."""
    it = with_gap()
    it.sync("cem", at=T + 5_000, history=["anchor", ("lost", "ben")])
    it.content("lost", "ben", at=T + 7_500)
    assert it.gaps() == {"opened": 1, "late": 1}
    assert it.figures("gap_ms") == {"count": 1, "sum": 7_500}


def test_sync_frame_that_a_tap_saw_is_no_gap() -> None:
    """What a tap has shown is not missing, whatever its kind (nim-sds)."""
    it = Simulated.after_warm_up()
    it.library_sync("anchor", "ana", at=T)
    it.sync("ben", at=T + 1_000, history=["anchor", "m"])
    it.library_sync("m", "ana", at=T + 9_000)
    it.sync("cem", at=T + 20_000, history=["anchor", "m"])
    it.heartbeat(at=T + 10_000_000)
    assert it.gaps() == {"opened": 1, "late": 1}
