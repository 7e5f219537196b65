"""Kinds of view and protocols, and what works for all of them alike."""

from __future__ import annotations

import pytest

from sds_core.observer.blindness import judge_blindness
from sds_core.observer.kinds import Outlet, UnknownKind
from sds_core.observer.protocols import PROTOCOLS, by_name, kinds_of
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.snapshot import JobFigures, Snapshot, Views
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import snapshot_of
from tests.support.toy.protocol import ROOMS, TOY, RoomTotals

CLOCK_MS = 10_000_000


def test_persisted_names_never_change() -> None:
    """Checkpoints hold keys of the state and files with these names."""
    kinds = {kind.prefix: kind.label_file for kind in kinds_of(PROTOCOLS)}
    assert kinds == {
        "sds": "labels.json",
        "mvds": "mvds-labels.json",
        "tap": "taps.json",
        "dead": "",
    }
    assert set(by_name(PROTOCOLS)) == {"sds", "mvds"}


def test_key_names_kind_and_view() -> None:
    """Whatever the name is: only the first colon separates."""
    kinds = kinds_of([*PROTOCOLS, TOY])
    for name in ("hall", "sds:hall", ":", ""):
        assert kinds.split(ROOMS.key(name)) == (ROOMS, name)


def test_view_of_a_kind_that_is_not_registered_is_refused() -> None:
    """The error says what to do."""
    expected = r"'toy'.*run the release that wrote the checkpoint"
    with pytest.raises(UnknownKind, match=expected):
        kinds_of(PROTOCOLS).split(ROOMS.key("hall"))


def test_every_event_has_an_outlet() -> None:
    """Each outlet takes the events of some kind."""
    used = {outlet for kind in kinds_of(PROTOCOLS) for outlet in kind.outlets.values()}
    assert used == set(Outlet)


def rooms(totals: RoomTotals, tap: TapTotals) -> Snapshot:
    """A job that observes one room and its tap."""
    return snapshot_of(
        primed=True,
        clock_ms=CLOCK_MS,
        taps={"tap": tap},
        others={"toy": Views(ROOMS, {"hall": totals})},
        job=JobFigures(running=True, event_time_lag_seconds=0.0),
    )


def test_views_of_every_protocol_are_blind_if_their_taps_are() -> None:
    """As SDS channels are, with the same reason and time."""
    totals = RoomTotals(first_event_ms=1, verdict=Verdict.OK, observers=["tap"])
    seen_ms = CLOCK_MS - 100_000
    snapshot = rooms(totals, TapTotals(last_seen_ms=seen_ms))
    judged = judge_blindness(snapshot).views["toy"].totals["hall"]
    assert (judged.verdict, judged.verdict_reason) == (Verdict.BLIND, "tap_hole")
    assert judged.verdict_since_ms == seen_ms + DEFAULTS.tap_hole_ms
    healthy = rooms(totals, TapTotals(last_seen_ms=CLOCK_MS))
    assert judge_blindness(healthy) == healthy


@pytest.mark.parametrize(
    ("verdict", "ok"), [(Verdict.DEGRADED, True), (Verdict.FAILING, False)]
)
def test_views_of_every_protocol_count_for_ok(verdict: Verdict, ok: bool) -> None:
    """One failing room is trouble."""
    snapshot = rooms(RoomTotals(verdict=verdict), TapTotals(last_seen_ms=CLOCK_MS))
    assert snapshot.ok is ok
