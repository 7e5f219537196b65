"""Which verdicts were shown, minute by minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.shown_verdicts import (
    DAY_MS,
    NOT_WATCHED,
    WORST_FIRST,
    ShownVerdict,
    Span,
    VerdictLog,
    day_begin_ms,
    minutes_by_verdict,
    spans_of,
    worst,
)
from sds_core.observer.verdict import Verdict
from tests.support.properties import CAREFUL

NOON_MS = 1_786_320_000_000 - 1_786_320_000_000 % DAY_MS + DAY_MS // 2


def views(**verdicts: str) -> Mapping[str, ChannelTotals]:
    """Views with a verdict each, and the reason `verdict` or the one behind a dot."""
    found = {}
    for name, text in verdicts.items():
        verdict, _, reason = text.partition(".")
        found[name] = ChannelTotals(
            verdict=Verdict(verdict), verdict_reason=reason or verdict
        )
    return found


def at(minute: float) -> int:
    """A time so many minutes after noon, Unix ms."""
    return NOON_MS + round(minute * MINUTE_MS)


def told(rows: Sequence[tuple[str, ShownVerdict]]) -> list[tuple[str, int, str]]:
    """Rows as name, minutes after noon, and verdict."""
    return [
        (name, (row.minute_ms - NOON_MS) // MINUTE_MS, row.verdict)
        for name, row in rows
    ]


def test_row_is_written_for_a_change_alone() -> None:
    """A view that is fine for an hour costs one row."""
    log = VerdictLog()
    rows = []
    for second in range(0, 3_600, 5):
        rows += log.observe(views(a="ok"), at(second / 60))
    assert told(rows) == [("a", 0, "ok")]
    assert told(log.observe(views(a="quiet"), at(60))) == [("a", 60, "quiet")]


def test_worst_verdict_of_a_minute_counts() -> None:
    """Although it was shown for seconds; it is written immediately."""
    log = VerdictLog()
    log.observe(views(a="ok"), at(0))
    assert told(log.observe(views(a="degraded"), at(0.2))) == [("a", 0, "degraded")]
    assert told(log.observe(views(a="failing.lost"), at(0.4))) == [("a", 0, "failing")]
    assert log.observe(views(a="ok"), at(0.6)) == []
    assert log.observe(views(a="ok"), at(0.9)) == []
    assert told(log.observe(views(a="ok"), at(1))) == [("a", 1, "ok")]
    assert log.observe(views(a="ok"), at(2)) == []


def test_other_reason_for_the_same_verdict_is_a_row() -> None:
    """In the next minute, if it still holds then."""
    log = VerdictLog()
    log.observe(views(a="failing.lost"), at(0))
    assert log.observe(views(a="failing.undelivered"), at(0.5)) == []
    ((_, row),) = log.observe(views(a="failing.undelivered"), at(1))
    assert row == ShownVerdict(at(1), "failing", "undelivered")


def test_views_that_have_not_changed_are_not_looked_at() -> None:
    """But those of which the minute's worst has passed are, when it has ended."""
    log = VerdictLog()
    log.observe(views(a="ok", b="failing"), at(0))
    log.observe(views(a="ok", b="ok"), at(0.5), changed={"b"})

    # Nobody said that this one has changed.
    shown = views(a="failing", b="ok")
    assert told(log.observe(shown, at(1), changed=())) == [("b", 1, "ok")]
    assert log.observe(shown, at(1.5), changed=()) == []


def test_minute_is_not_called_fine_if_part_of_it_was_not_watched() -> None:
    """But what was worse in it stays."""
    log = VerdictLog()
    log.observe(views(a="ok", b="failing"), at(0))
    rows = log.observe(views(a="ok", b="failing"), at(0.5), "behind", changed=())
    assert told(rows) == [("a", 0, NOT_WATCHED)]
    assert log.observe(views(a="ok", b="failing"), at(0.9), changed=()) == []
    rows = log.observe(views(a="ok", b="failing"), at(1), changed=())
    assert told(rows) == [("a", 1, "ok")]


def test_verdicts_that_do_not_hold_are_not_watched() -> None:
    """A view that is failing while the monitor is behind is not shown as failing."""
    log = VerdictLog()
    log.observe(views(a="ok"), at(0))
    rows = log.observe(views(a="failing", b="ok"), at(1), "behind")
    assert sorted(told(rows)) == [("a", 1, NOT_WATCHED), ("b", 1, NOT_WATCHED)]
    ((_, row),) = log.observe(views(a="failing"), at(2), "no_answer", changed={"a"})[:1]
    assert row == ShownVerdict(at(2), NOT_WATCHED, "no_answer")


@pytest.mark.parametrize("later", [0.8, 1.2, 7.2])
def test_pause_is_not_watched(later: float) -> None:
    """From the minute of the last look to that of the next one."""
    before = VerdictLog()
    rows = before.observe(views(a="ok", b="failing"), at(0.2))
    log = VerdictLog(dict(rows), at(0.2))
    rows += log.observe(views(a="ok", b="quiet"), at(later), paused=True)
    rows += log.observe(views(a="ok", b="quiet"), at(int(later) + 1))
    until_ms = at(int(later) + 2)
    spans = spans_of([row for name, row in rows if name == "a"], at(0), until_ms)
    last = spans[-1]
    assert last == Span(at(int(later) + 1), until_ms, "ok", "ok")
    assert spans[-2].verdict == NOT_WATCHED
    assert spans[-2].begin_ms == at(0)
    spans = _spans(rows, "b", until_ms)
    assert spans[0] == Span(at(0), at(1), "failing", "failing")
    if later > 1:
        assert [one.verdict for one in spans] == ["failing", NOT_WATCHED, "quiet"]


def _spans(
    rows: Sequence[tuple[str, ShownVerdict]], name: str, until_ms: int
) -> list[Span]:
    by_minute = {row.minute_ms: row for one, row in rows if one == name}
    return spans_of([by_minute[at] for at in sorted(by_minute)], at(0), until_ms)


def test_each_day_begins_with_a_row_of_each_view() -> None:
    """So the rows of a day are enough to know it."""
    log = VerdictLog()
    log.observe(views(a="ok", b="ok"), at(0))
    midnight = 12 * 60
    rows = log.observe(views(a="ok", b="ok"), at(midnight), changed=())
    assert sorted(told(rows)) == [("a", midnight, "ok"), ("b", midnight, "ok")]


def test_row_does_not_hold_beyond_its_day() -> None:
    """A monitor that was not started on the next day did not watch it."""
    end_ms = day_begin_ms(NOON_MS) + DAY_MS
    rows = [ShownVerdict(at(0), "ok", "ok")]
    assert spans_of(rows, 0, end_ms + DAY_MS) == [Span(at(0), end_ms, "ok", "ok")]


def test_pause_over_days_is_written_on_its_first_and_its_last_day() -> None:
    """However long it was."""
    log = VerdictLog({"a": ShownVerdict(at(0), "ok", "ok")}, at(0.5))
    later_ms = at(0) + 3 * DAY_MS
    rows = log.observe(views(a="ok"), later_ms, paused=True)
    assert [row.minute_ms for _, row in rows] == [at(0), day_begin_ms(later_ms)]
    assert {row.verdict for _, row in rows} == {NOT_WATCHED}


def test_view_that_is_gone_ends_with_a_row() -> None:
    """And begins anew when it returns."""
    log = VerdictLog()
    log.observe(views(a="ok", b="ok"), at(0))
    ((name, row),) = log.observe(views(b="ok"), at(1), changed={"a"})
    assert (name, row) == ("a", ShownVerdict(at(1), NOT_WATCHED, "forgotten"))
    assert log.observe(views(b="ok"), at(2)) == []
    rows = log.observe(views(a="warming_up", b="ok"), at(3), changed={"a"})
    assert told(rows) == [("a", 3, "warming_up")]
    again = VerdictLog({name: row}, at(1))
    assert again.observe({}, at(5), paused=True) == []


def test_clock_that_is_set_back_a_little_changes_nothing() -> None:
    """What is shown meanwhile counts in the newest minute."""
    log = VerdictLog()
    log.observe(views(a="ok"), at(10))
    assert told(log.observe(views(a="failing"), at(5))) == [("a", 10, "failing")]
    assert log.observe(views(a="failing"), at(5)) == []


def test_clock_that_was_wrong_by_hours_begins_anew() -> None:
    """Otherwise nothing would be written until its time has come."""
    log = VerdictLog()
    log.observe(views(a="ok"), at(600))
    assert told(log.observe(views(a="ok"), at(5))) == [("a", 5, "ok")]


def test_view_that_did_not_change_when_the_clock_was_set_right_has_a_row() -> None:
    """It is shown then and later, also in minutes with a row from the wrong clock."""
    log = VerdictLog()
    log.observe(views(a="ok"), at(0))
    log.observe(views(a="failing"), at(300))
    log.ahead = {"a": [at(300)]}
    rows = log.observe(views(a="failing"), at(5), changed=())
    assert told(rows) == [("a", 5, "failing")]
    rows = log.observe(views(a="failing"), at(301), changed=())
    assert told(rows) == [("a", 300, "failing")]


@pytest.mark.parametrize(
    ("paused", "expected"), [(False, "ok"), (True, NOT_WATCHED)], ids=["look", "pause"]
)
def test_row_of_a_wrong_clock_gets_what_was_shown_in_its_minute(
    paused: bool, expected: str
) -> None:
    """Although the clock passes the minute between two looks."""
    log = VerdictLog(ahead={"a": [at(301)]})
    log.observe(views(a="ok"), at(299))
    rows = told(log.observe(views(a="failing"), at(303), paused=paused))
    assert [row for row in rows if row[1] == 301] == [("a", 301, expected)]
    assert rows[-1] == ("a", 303, "failing")
    assert log.ahead == {}


def test_spans_are_cut_at_the_times_that_are_asked_for() -> None:
    """Equal neighbours are one; what is unknown has none."""
    rows = [
        ShownVerdict(at(0), "ok", "ok"),
        ShownVerdict(at(5), "failing", "lost"),
        ShownVerdict(at(7), "ok", "ok"),
        ShownVerdict(at(9), "ok", "ok"),
    ]
    assert spans_of(rows, at(3), at(12)) == [
        Span(at(3), at(5), "ok", "ok"),
        Span(at(5), at(7), "failing", "lost"),
        Span(at(7), at(12), "ok", "ok"),
    ]
    assert spans_of(rows, at(-9), at(1)) == [Span(at(0), at(1), "ok", "ok")]
    assert spans_of([], at(0), at(9)) == []
    spans = spans_of(rows, at(0), at(10))
    assert minutes_by_verdict(spans) == dict.fromkeys(WORST_FIRST, 0) | {
        "ok": 8,
        "failing": 2,
    }
    assert worst(spans) == spans[1]


@settings(CAREFUL, max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 50_000),
            st.sampled_from(Verdict),
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_every_minute_has_its_worst_verdict(
    looks: list[tuple[int, Verdict, bool, bool]],
) -> None:
    """However looks and restarts lie."""
    log, now_ms = VerdictLog(), NOON_MS
    rows: list[tuple[str, ShownVerdict]] = []
    worst_of: dict[int, int] = {}
    for after_ms, verdict, holds, restarts in looks:
        if restarts and rows:
            log = VerdictLog({"a": rows[-1][1]}, now_ms)
        now_ms += after_ms
        verdict_word = verdict.value if holds else NOT_WATCHED
        rows += log.observe(views(a=verdict.value), now_ms, "" if holds else "behind")
        minute = (now_ms - NOON_MS) // MINUTE_MS
        rank = WORST_FIRST.index(verdict_word)
        worst_of[minute] = min(worst_of.get(minute, rank), rank)
    spans = _spans(rows, "a", now_ms // MINUTE_MS * MINUTE_MS + MINUTE_MS)
    for minute, rank in worst_of.items():
        (found,) = (
            span.verdict
            for span in spans
            if span.begin_ms <= NOON_MS + minute * MINUTE_MS < span.end_ms
        )
        assert found == WORST_FIRST[rank]
