"""Channels that no tap sees completely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sds_core.observer.blindness import (
    coincides_with_hole,
    judge_blindness,
)
from sds_core.observer.freshness import SILENT_S, Arrivals, Freshness, MissingTopic
from sds_core.observer.record import NO_SEQ
from sds_core.observer.sds.evidence import Evidence, Found
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.snapshot import NO_AUDIT, JobFigures, MirrorAudit, Snapshot
from sds_core.observer.tap_view import TapTotals, TapView
from sds_core.observer.verdict import Verdict
from tests.support.frames import START_MS
from tests.support.snapshots import snapshot_of
from tests.support.tap import digest

HORIZON_MS = DEFAULTS.horizon_ms
NOW_MS = 1_750_000_000_000


def judged(
    *taps: TapTotals,
    idle_s: float | None = None,
    behind: int = 0,
    verdict: Verdict = Verdict.OK,
) -> tuple[Verdict, str]:
    """The verdict on a channel that was shown by these taps."""
    names = [f"tap {number}" for number in range(len(taps))]
    totals = ChannelTotals(verdict=verdict, verdict_reason="as it was", observers=names)
    snapshot = snapshot_of(
        primed=True,
        clock_ms=NOW_MS,
        channels={"town": totals},
        taps=dict(zip(names, taps, strict=True)),
        job=JobFigures(records_behind=behind, arrivals=Arrivals(1_000)),
    )
    if idle_s is not None:
        snapshot = snapshot.as_of(1_000 + idle_s)
    found = judge_blindness(snapshot).views["sds"].totals["town"]
    assert totals.verdict is verdict, "the view's own totals were changed"
    return found.verdict, found.verdict_reason


WHOLE = TapTotals(last_seen_ms=NOW_MS - 5_000)
SILENT = TapTotals(last_seen_ms=NOW_MS - 15_001)


def test_healthy_tap_makes_no_channel_blind() -> None:
    """The view's verdict stays."""
    assert judged(WHOLE) == (Verdict.OK, "as it was")


def test_a_tap_silent_for_more_than_fifteen_seconds_is_a_hole() -> None:
    """At exactly 15 s it is not."""
    assert judged(SILENT) == (Verdict.BLIND, "tap_hole")
    assert judged(TapTotals(last_seen_ms=NOW_MS - 15_000))[0] is Verdict.OK


def test_one_tap_without_holes_is_enough() -> None:
    """A channel is blind if each of its taps has a hole."""
    assert judged(SILENT, WHOLE)[0] is Verdict.OK
    assert judged(SILENT, SILENT)[0] is Verdict.BLIND


@pytest.mark.parametrize(("ago_ms", "blind"), [(600_000, True), (600_001, False)])
def test_a_hole_counts_for_the_window(ago_ms: int, blind: bool) -> None:
    """Ten minutes later the figures are complete again."""
    tap = TapTotals(last_seen_ms=NOW_MS, last_hole_ms=NOW_MS - ago_ms)
    assert (judged(tap)[0] is Verdict.BLIND) is blind


def test_without_tap_headers_there_is_no_tap_health() -> None:
    """No channel is called blind then."""
    assert judged() == (Verdict.OK, "as it was")


def test_a_topic_without_any_record_is_blind_by_arrival() -> None:
    """Unless unread records exist; a report judges by event time alone."""
    late = SILENT_S + 0.1
    assert judged(idle_s=late) == (Verdict.BLIND, "no_records")
    assert judged(idle_s=SILENT_S)[0] is Verdict.OK
    assert judged(idle_s=late, behind=3)[0] is Verdict.OK
    assert judged()[0] is Verdict.OK


def test_no_channel_is_blind_because_kafka_or_the_topic_is_away() -> None:
    """The topic's end is that of the last answer: nobody knows whether it is silent."""
    snapshot = snapshot_of(
        primed=True,
        clock_ms=NOW_MS,
        channels={"town": ChannelTotals(verdict=Verdict.OK, verdict_reason="ok")},
        job=JobFigures(
            kafka=Freshness(NOW_MS, answered_s=1_000), arrivals=Arrivals(950)
        ),
    )
    for silent_s in (61, 3_600):
        away = snapshot.as_of(1_000 + silent_s)
        found = judge_blindness(away).views["sds"].totals["town"]
        assert (found.verdict, found.verdict_reason) == (Verdict.OK, "ok")
    missing = replace(
        snapshot.as_of(1_061),
        job=replace(
            snapshot.as_of(1_061).job, missing_topic=MissingTopic("frames", NOW_MS)
        ),
    )
    assert judge_blindness(missing).views["sds"].totals["town"].verdict is Verdict.OK
    found = judge_blindness(snapshot.as_of(1_015)).views["sds"].totals["town"]
    assert found.verdict_reason == "no_records"


def test_silence_is_measured_anew_when_kafka_is_back() -> None:
    """Nobody knows what came meanwhile; a short pause of Kafka changes nothing."""
    arrivals = Arrivals().after_answer(True, Freshness(), 0)
    for second in range(1, 31):
        answer = Freshness(NOW_MS, answered_s=second - 1)
        arrivals = arrivals.after_answer(False, answer, second)
    assert arrivals.as_of(60).idle_s == 60
    brief = arrivals.after_answer(False, Freshness(NOW_MS, answered_s=30), 45)
    assert brief.as_of(61).is_silent
    back = arrivals.after_answer(False, Freshness(NOW_MS, answered_s=30), 3_600)
    assert not back.as_of(3_660).is_silent
    assert back.as_of(3_661).is_silent
    assert not back.after_answer(True, answer, 3_661).as_of(3_662).is_silent


def test_warming_up_comes_before_blind() -> None:
    """The first verdict of the list that applies counts."""
    found = judged(SILENT, verdict=Verdict.WARMING_UP)
    assert found == (Verdict.WARMING_UP, "as it was")


# --- since when


def since(
    *taps: TapTotals,
    idle_s: float = 0,
    verdict_since_ms: int | None = NOW_MS - 3_000_000,
    first_event_ms: int = NOW_MS - 3_030_000,
) -> tuple[Verdict, int | None]:
    """The verdict, and how long ago it began."""
    names = [f"tap {number}" for number in range(len(taps))]
    totals = ChannelTotals(
        first_event_ms=first_event_ms,
        verdict=Verdict.OK,
        observers=names,
        verdict_since_ms=verdict_since_ms,
    )
    snapshot = snapshot_of(
        clock_ms=NOW_MS,
        channels={"town": totals},
        taps=dict(zip(names, taps, strict=True)),
        job=JobFigures(arrivals=Arrivals(1_000)),
    ).as_of(1_000 + idle_s)
    found = judge_blindness(snapshot).views["sds"].totals["town"]
    since_ms = found.verdict_since_ms
    return found.verdict, None if since_ms is None else NOW_MS - since_ms


def troubled(since_ago_ms: int, last_ago_ms: int, seen_ago_ms: int = 0) -> TapTotals:
    """A tap that always had a hole in the window from the first time to the second."""
    return TapTotals(
        last_seen_ms=NOW_MS - seen_ago_ms,
        last_hole_ms=NOW_MS - last_ago_ms,
        hole_since_ms=NOW_MS - since_ago_ms,
    )


def test_silence_blinds_from_fifteen_seconds_on() -> None:
    """After the last record."""
    assert since(TapTotals(last_seen_ms=NOW_MS - 40_000)) == (Verdict.BLIND, 25_000)


def test_channel_is_blind_from_the_first_of_adjoining_holes() -> None:
    """If there always was a hole in the window, including a present silence."""
    assert since(troubled(900_000, 300_000)) == (Verdict.BLIND, 900_000)
    assert since(troubled(900_000, 620_000, 40_000)) == (Verdict.BLIND, 900_000)
    # The window of the last hole ended just as the silence told.
    assert since(troubled(900_000, 625_000, 40_000)) == (Verdict.BLIND, 900_000)
    assert since(troubled(900_000, 625_001, 40_000)) == (Verdict.BLIND, 25_000)


def test_channel_is_blind_since_its_last_good_tap_got_a_hole() -> None:
    """Before that, one tap saw it completely."""
    early, late = troubled(900_000, 300_000), troubled(200_000, 200_000)
    assert since(early, late) == (Verdict.BLIND, 200_000)


def test_hole_of_an_older_blob_blinds_from_its_end_on() -> None:
    """Older blobs do not have the start of a hole."""
    tap = TapTotals(last_seen_ms=NOW_MS, last_hole_ms=NOW_MS - 100_000)
    assert since(tap) == (Verdict.BLIND, 100_000)


def test_no_channel_is_blind_before_its_warm_up_ended() -> None:
    """Even if its taps had holes before."""
    found = since(troubled(900_000, 300_000), first_event_ms=NOW_MS - 500_000)
    assert found == (Verdict.BLIND, 470_000)


def test_silent_topic_is_blind_after_a_minute_of_wall_time() -> None:
    """The clock does not move without records."""
    whole = TapTotals(last_seen_ms=NOW_MS)
    found = since(whole, idle_s=600)
    assert found == (Verdict.BLIND, -60_000)


def test_verdict_after_blindness_begins_at_its_end() -> None:
    """A millisecond after the hole left the window."""
    assert since(troubled(900_000, 700_000)) == (Verdict.OK, 99_999)
    recent = NOW_MS - 50_000
    found = since(troubled(900_000, 700_000), verdict_since_ms=recent)
    assert found == (Verdict.OK, 50_000)


def test_verdict_of_a_channel_that_was_never_blind_stays() -> None:
    """A tap had no hole, or the holes were at different times."""
    stands = (Verdict.OK, 3_000_000)
    assert since() == stands
    assert since(TapTotals(last_seen_ms=NOW_MS)) == stands
    assert since(troubled(900_000, 700_000), TapTotals(last_seen_ms=NOW_MS)) == stands
    early = troubled(2_900_000, 2_900_000)
    assert since(early, troubled(2_299_999, 700_000)) == stands
    # They meet in one moment.
    assert since(early, troubled(2_300_000, 700_000)) == (Verdict.OK, 2_299_999)


def test_verdict_of_an_older_blob_has_no_beginning() -> None:
    """It is unknown."""
    found = since(troubled(900_000, 700_000), verdict_since_ms=None)
    assert found == (Verdict.OK, None)


def test_blindness_of_a_tap_from_its_records() -> None:
    """Silence, return, and the window after it, with a real tap view."""
    beats = [(at, NO_SEQ) for at in range(100_000, 720_000, 10_000)]
    for at, expected in (
        (15_000, (Verdict.OK, 0)),
        (15_001, (Verdict.BLIND, 15_000)),
        (100_000, (Verdict.BLIND, 15_000)),
        (700_000, (Verdict.BLIND, 15_000)),
        (700_001, (Verdict.OK, 700_001)),
    ):
        records = digest((0, NO_SEQ), heartbeats=beats)
        view = TapView()
        view.apply([records], START_MS + at)
        totals = ChannelTotals(
            verdict=Verdict.OK, observers=["tap"], verdict_since_ms=START_MS
        )
        snapshot = snapshot_of(
            clock_ms=START_MS + at,
            channels={"town": totals},
            taps={"tap": view.totals},
        )
        found = judge_blindness(snapshot).views["sds"].totals["town"]
        assert found.verdict_since_ms is not None
        assert (found.verdict, found.verdict_since_ms - START_MS) == expected


# --- the one number


def monitored(taps: Mapping[str, TapTotals], *, lag_s: float = 0) -> Snapshot:
    """A running monitor of one channel that two taps showed."""
    return snapshot_of(
        primed=True,
        clock_ms=NOW_MS,
        channels={"town": ChannelTotals(verdict=Verdict.OK, observers=["a", "b"])},
        taps=taps,
        job=JobFigures(running=True, event_time_lag_seconds=lag_s),
    )


@pytest.mark.parametrize(
    ("taps", "ok"),
    [
        ({"a": WHOLE, "b": WHOLE}, True),
        ({"a": WHOLE, "b": SILENT}, True),
        ({"a": SILENT, "b": SILENT}, False),
        # A tap that is not there is forgotten.
        ({"a": SILENT}, False),
        ({"a": WHOLE}, True),
        ({}, True),
    ],
)
def test_monitor_is_ok_while_no_channel_is_blind(
    taps: dict[str, TapTotals], ok: bool
) -> None:
    """A forgotten tap makes no channel blind."""
    assert judge_blindness(monitored(taps)).ok is ok


def test_monitor_is_not_ok_without_records_or_behind() -> None:
    """Only times decide both."""
    silent = replace(JobFigures().arrivals, grew_s=0, idle_s=SILENT_S + 1)
    snapshot = monitored({"a": WHOLE})
    snapshot = replace(snapshot, job=replace(snapshot.job, arrivals=silent))
    assert not judge_blindness(snapshot).ok
    assert judge_blindness(monitored({"a": WHOLE}, lag_s=60)).ok
    assert not judge_blindness(monitored({"a": WHOLE}, lag_s=60.1)).ok


# --- incidents


def coincides(taps: Mapping[str, TapTotals], from_ago_ms: int, to_ago_ms: int) -> bool:
    """Of a channel that taps a and b showed."""
    return coincides_with_hole(
        ["a", "b"], taps, NOW_MS - from_ago_ms, NOW_MS - to_ago_ms, NOW_MS
    )


HOLED = TapTotals(
    last_seen_ms=NOW_MS,
    holes=[
        (NOW_MS - 900_000, NOW_MS - 800_000),
        (NOW_MS - 300_000, NOW_MS - 280_000),
    ],
)


@pytest.mark.parametrize(
    ("from_ago_ms", "to_ago_ms", "found"),
    [
        (1_000_000, 900_001, False),
        (1_000_000, 900_000, True),
        (850_000, 840_000, True),
        (1_000_000, 0, True),
        (800_000, 790_000, True),
        (799_999, 300_001, False),
        (290_000, 290_000, True),
        (279_999, 0, False),
    ],
)
def test_span_coincides_with_an_overlapping_hole(
    from_ago_ms: int, to_ago_ms: int, found: bool
) -> None:
    """Both ends are inclusive."""
    assert coincides({"a": HOLED}, from_ago_ms, to_ago_ms) is found


def test_every_tap_must_have_a_hole_there() -> None:
    """A tap without a hole would have seen the message."""
    other = TapTotals(last_seen_ms=NOW_MS, holes=[(NOW_MS - 290_000, NOW_MS)])
    assert coincides({"a": HOLED, "b": other}, 290_000, 285_000)
    assert not coincides({"a": HOLED, "b": other}, 850_000, 840_000)
    # Each within the span is enough.
    assert coincides({"a": HOLED, "b": other}, 850_000, 100_000)


def test_silence_now_is_a_hole_from_the_last_record_on() -> None:
    """Once it lasts longer than 15 s."""
    silent = TapTotals(last_seen_ms=NOW_MS - 15_001)
    assert coincides({"a": silent}, 20_000, 15_001)
    assert coincides({"a": silent}, 10, 0)
    assert not coincides({"a": silent}, 20_000, 15_002)
    assert not coincides({"a": TapTotals(last_seen_ms=NOW_MS - 15_000)}, 10, 0)


def test_nothing_coincides_without_a_known_tap() -> None:
    """No headers, taps of other channels only, or forgotten taps."""
    assert not coincides({}, 10_000, 0)
    assert not coincides({"elsewhere": SILENT}, 10_000, 0)


def test_forgotten_tap_has_no_hole() -> None:
    """Its totals are empty."""
    view = TapView()
    view.apply([digest((0, 1), (20_000, 2))], START_MS + 20_001)
    assert view.totals.holes
    view.apply([], START_MS + 20_001 + HORIZON_MS)
    assert view.is_forgotten
    assert not view.totals.holes


# What is found in the shadow of a hole.

MINUTE_MS = 60_000

HOLE_MS = NOW_MS - 11 * MINUTE_MS
"""End of a hole whose blindness is over."""

RECOVERED_TAP = TapTotals(
    last_seen_ms=NOW_MS,
    last_hole_ms=HOLE_MS,
    hole_since_ms=HOLE_MS - MINUTE_MS,
    holes=[(HOLE_MS - MINUTE_MS, HOLE_MS)],
)

IN_THE_SHADOW = (HOLE_MS - 20_000, NOW_MS - 6 * MINUTE_MS)
"""Begin and end of what a hole may have caused."""

OUTSIDE = (HOLE_MS + MINUTE_MS, NOW_MS - 5 * MINUTE_MS)


def evidence(**found: list[Found]) -> Evidence:
    """Of a channel with a hundred messages and deliveries in the window."""
    nothing: dict[str, list[Found]] = {
        name: []
        for name in (
            "lost",
            "undelivered",
            "unacknowledged",
            "recovered",
            "expired",
            "gaps",
        )
    }
    return Evidence(100, 100, saturated=False, content=True, **nothing | found)


def excused(
    *taps: TapTotals, reason: str = "lost", **found: list[Found]
) -> tuple[Verdict, str, int | None]:
    """Verdict, reason and begin of a failing channel with this evidence."""
    names = [f"tap {number}" for number in range(len(taps))]
    totals = ChannelTotals(
        verdict=Verdict.FAILING,
        verdict_reason=reason,
        verdict_since_ms=NOW_MS - 6 * MINUTE_MS,
        observers=names,
        evidence=evidence(**found),
    )
    snapshot = snapshot_of(
        clock_ms=NOW_MS,
        channels={"town": totals},
        taps=dict(zip(names, taps, strict=True)),
    )
    judged = judge_blindness(snapshot).views["sds"].totals["town"]
    return judged.verdict, judged.verdict_reason, judged.verdict_since_ms


@pytest.mark.parametrize(
    "kind", ["lost", "undelivered", "unacknowledged", "recovered", "expired", "gaps"]
)
def test_what_a_hole_may_have_caused_counts_in_no_verdict(kind: str) -> None:
    """The channel is again what the evidence outside the hole says."""
    verdict, reason, since_ms = excused(RECOVERED_TAP, **{kind: [(*IN_THE_SHADOW, 50)]})
    assert (verdict, reason) == (Verdict.OK, "ok")
    assert since_ms == HOLE_MS + DEFAULTS.verdict_window_ms + 1


def test_evidence_outside_of_holes_still_counts() -> None:
    """Only its part that the hole may have caused does not."""
    shadow, outside = (*IN_THE_SHADOW, 50), (*OUTSIDE, 1)
    assert excused(RECOVERED_TAP, lost=[shadow, outside])[:2] == (
        Verdict.FAILING,
        "lost",
    )
    assert excused(RECOVERED_TAP, lost=[shadow], undelivered=[outside])[:2] == (
        Verdict.DEGRADED,
        "undelivered",
    )


def test_hole_of_one_of_two_taps_excuses_nothing() -> None:
    """The other tap saw what there was."""
    found = {"lost": [(*IN_THE_SHADOW, 1)]}
    assert excused(RECOVERED_TAP, WHOLE, **found)[:2] == (Verdict.FAILING, "lost")


def test_evidence_that_began_fifteen_seconds_after_a_hole_is_excused() -> None:
    """The same rule as for the mark of incidents."""
    for after_ms, verdict in ((15_000, Verdict.OK), (15_001, Verdict.FAILING)):
        found = {"lost": [(HOLE_MS + after_ms, NOW_MS, 1)]}
        assert excused(RECOVERED_TAP, **found)[0] is verdict


def audited(
    missing: Mapping[str, int], verdict: Verdict = Verdict.OK
) -> dict[str, tuple[Verdict, str]]:
    """The verdicts on two channels after an audit."""
    totals = ChannelTotals(verdict=verdict, verdict_reason="as it was")
    snapshot = snapshot_of(
        primed=True,
        clock_ms=NOW_MS,
        channels={"town": totals, "village": totals},
        audit=MirrorAudit(missing),
    )
    found = judge_blindness(snapshot).views["sds"].totals
    return {name: (one.verdict, one.verdict_reason) for name, one in found.items()}


def test_a_channel_of_which_the_mirror_lacks_a_recent_message_is_blind() -> None:
    """For as long as the message is in the window; the other channel is not."""
    window_ms = DEFAULTS.verdict_window_ms
    blind, as_it_was = (Verdict.BLIND, "audit_incomplete"), (Verdict.OK, "as it was")
    assert audited({}) == {"town": as_it_was, "village": as_it_was}
    recent = {"town": NOW_MS - window_ms}
    assert audited(recent) == {"town": blind, "village": as_it_was}
    old = {"town": NOW_MS - window_ms - 1}
    assert audited(old) == {"town": as_it_was, "village": as_it_was}


def test_a_missing_message_of_an_unknown_channel_blinds_all() -> None:
    """It may be of any of them."""
    found = audited({"": NOW_MS, "town": 1})
    assert {verdict for verdict, _ in found.values()} == {Verdict.BLIND}


def test_an_audit_does_not_end_a_warm_up_or_another_blindness() -> None:
    """These have their own reasons."""
    for verdict in (Verdict.WARMING_UP, Verdict.BLIND):
        assert audited({"": NOW_MS}, verdict)["town"] == (verdict, "as it was")


# --- alerts that are held back


def findings(
    *taps: TapTotals,
    audit: MirrorAudit = NO_AUDIT,
    muted: bool = False,
    **found: list[Found],
) -> list[tuple[str, str, int, int, bool]]:
    """Alert, reason, excused and other findings, and whether the alert is held back."""
    names = [f"tap {number}" for number in range(len(taps))]
    totals = ChannelTotals(
        verdict=Verdict.FAILING, observers=names, evidence=evidence(**found)
    )
    snapshot = snapshot_of(
        clock_ms=NOW_MS,
        channels={"town": totals},
        taps=dict(zip(names, taps, strict=True)),
        muted=frozenset({"town"} if muted else ()),
        audit=audit,
    )
    judged = judge_blindness(snapshot)
    held = [one for _, one in judged.views["sds"].held_back]
    return [
        (one.alert, one.excuse.reason, one.excused, one.counted, one in held)
        for one in judged.views["sds"].excused.get("town", ())
    ]


def test_alerts_on_what_a_hole_may_have_caused_are_held_back() -> None:
    """Each kind of finding by itself, from the number on that is an alert."""
    assert findings(
        RECOVERED_TAP,
        lost=[(*IN_THE_SHADOW, 2)],
        undelivered=[(*IN_THE_SHADOW, 1)],
        unacknowledged=[(*IN_THE_SHADOW, 6)],
        expired=[(*IN_THE_SHADOW, 9)],
    ) == [
        ("SdsMessagesLost", "tap_hole", 2, 0, True),
        # One of a hundred is what the SLO allows.
        ("SdsDeliveryBudgetBurn", "tap_hole", 1, 0, False),
        ("SdsAcknowledgementBudgetBurn", "tap_hole", 6, 0, True),
        ("SdsRepairExpiring", "tap_hole", 9, 0, False),
    ]
    assert findings(RECOVERED_TAP, expired=[(*IN_THE_SHADOW, 10)])[0][-1]


def test_alert_is_not_held_back_if_enough_other_findings_count() -> None:
    """Before the hole, or outside of it."""
    before = (HOLE_MS - 8 * MINUTE_MS, HOLE_MS - 2 * MINUTE_MS)
    both = [(*before, 1), (*IN_THE_SHADOW, 5)]
    assert findings(RECOVERED_TAP, lost=both) == [
        ("SdsMessagesLost", "tap_hole", 5, 1, False)
    ]
    assert findings(RECOVERED_TAP, lost=[(*before, 1)]) == []
    assert findings(WHOLE, lost=[(*IN_THE_SHADOW, 5)]) == []
    assert findings(RECOVERED_TAP, WHOLE, lost=[(*IN_THE_SHADOW, 5)]) == []


def test_message_that_is_named_long_after_a_hole_may_have_been_sent_in_it() -> None:
    """Up to five minutes, and the 15 s of a hole; other findings are not of then."""
    limit_ms = HOLE_MS + 5 * MINUTE_MS + 15_000
    assert findings(RECOVERED_TAP, lost=[(limit_ms, NOW_MS, 1)])[0][-1]
    assert findings(RECOVERED_TAP, lost=[(limit_ms + 1, NOW_MS, 1)]) == []
    assert findings(RECOVERED_TAP, undelivered=[(limit_ms, NOW_MS, 50)]) == []


def test_muted_channel_has_no_alert_to_hold_back() -> None:
    """What is excused is the same."""
    lost = [(*IN_THE_SHADOW, 2)]
    assert findings(RECOVERED_TAP, muted=True, lost=lost) == [
        ("SdsMessagesLost", "tap_hole", 2, 0, False)
    ]


def test_silent_topic_excuses_nothing() -> None:
    """The clock stands still, so nothing is found; what was found before counts."""
    totals = ChannelTotals(
        verdict=Verdict.FAILING,
        observers=["a"],
        evidence=evidence(lost=[(*OUTSIDE, 1)]),
    )
    job = JobFigures(arrivals=Arrivals(0))
    snapshot = snapshot_of(
        clock_ms=NOW_MS, channels={"town": totals}, taps={"a": WHOLE}, job=job
    )
    judged = judge_blindness(snapshot.as_of(61))
    assert judged.views["sds"].totals["town"].verdict_reason == "no_records"
    assert not judged.views["sds"].excused


def test_alert_is_held_back_if_the_mirror_lacks_messages() -> None:
    """Of what began before the newest of them, while the channel is blind for it."""
    audit = MirrorAudit({"town": NOW_MS - 4 * MINUTE_MS})
    lost = [(NOW_MS - 5 * MINUTE_MS, NOW_MS, 2)]
    assert findings(WHOLE, audit=audit, lost=lost) == [
        ("SdsMessagesLost", "audit_incomplete", 2, 0, True)
    ]
    undelivered = [(NOW_MS - 3 * MINUTE_MS, NOW_MS, 9)]
    assert findings(WHOLE, audit=audit, undelivered=undelivered) == []
    old = MirrorAudit({"town": NOW_MS - 11 * MINUTE_MS})
    assert findings(WHOLE, audit=old, lost=lost) == []
