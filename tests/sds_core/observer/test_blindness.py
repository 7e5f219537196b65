"""Channels that no tap sees whole."""

from __future__ import annotations

import pytest

from sds_core.observer.blindness import SILENT_MS, judge_blindness
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.totals import ChannelTotals, TapTotals, Verdict

NOW_MS = 1_750_000_000_000


def judged(
    *taps: TapTotals,
    wall_ms: int | None = None,
    behind: int = 0,
    verdict: Verdict = Verdict.OK,
) -> tuple[Verdict, str]:
    """The verdict on a channel that was shown by these taps."""
    names = [f"tap {number}" for number in range(len(taps))]
    totals = ChannelTotals(verdict=verdict, verdict_reason="as it was", observers=names)
    snapshot = Snapshot(
        primed=True,
        clock_ms=NOW_MS,
        channels={"town": totals},
        taps=dict(zip(names, taps, strict=True)),
        job=JobFigures(records_behind=behind),
    )
    found = judge_blindness(snapshot, wall_ms).channels["town"]
    assert totals.verdict is verdict, "the view's own totals were changed"
    return found.verdict, found.verdict_reason


WHOLE = TapTotals(last_seen_ms=NOW_MS - 5_000)
SILENT = TapTotals(last_seen_ms=NOW_MS - 15_001)


def test_a_tap_that_is_there_blinds_nobody() -> None:
    """The view's verdict stands."""
    assert judged(WHOLE) == (Verdict.OK, "as it was")


def test_a_tap_silent_for_more_than_fifteen_seconds_is_a_hole() -> None:
    """At exactly fifteen it is not yet."""
    assert judged(SILENT) == (Verdict.BLIND, "tap_hole")
    assert judged(TapTotals(last_seen_ms=NOW_MS - 15_000))[0] is Verdict.OK


def test_one_whole_tap_is_enough() -> None:
    """A channel is blind while every tap of it has a hole."""
    assert judged(SILENT, WHOLE)[0] is Verdict.OK
    assert judged(SILENT, SILENT)[0] is Verdict.BLIND


@pytest.mark.parametrize(("ago_ms", "blind"), [(600_000, True), (600_001, False)])
def test_a_hole_counts_for_the_window(ago_ms: int, blind: bool) -> None:
    """Ten minutes after it the figures are whole again."""
    tap = TapTotals(last_seen_ms=NOW_MS, last_hole_ms=NOW_MS - ago_ms)
    assert (judged(tap)[0] is Verdict.BLIND) is blind


def test_without_tap_headers_there_is_no_tap_health() -> None:
    """Nothing is known, nothing is said."""
    assert judged() == (Verdict.OK, "as it was")


def test_a_topic_without_any_record_is_blind_by_wall_time() -> None:
    """Unless records are there and only not read yet, or wall time is not asked."""
    late = NOW_MS + SILENT_MS + 1
    assert judged(wall_ms=late) == (Verdict.BLIND, "no_records")
    assert judged(wall_ms=late - 1)[0] is Verdict.OK
    assert judged(wall_ms=late, behind=3)[0] is Verdict.OK
    assert judged(wall_ms=None)[0] is Verdict.OK


def test_warming_up_comes_before_blind() -> None:
    """The first verdict of the model's list that holds."""
    found = judged(SILENT, verdict=Verdict.WARMING_UP)
    assert found == (Verdict.WARMING_UP, "as it was")
