"""Likely causes of a verdict, rule by rule, with a near miss of each (section 12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from sds_core.observer.blindness import causes_of
from sds_core.observer.causes import Cause
from sds_core.observer.sds.evidence import Evidence, Found
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.suspects import (
    Abandoned,
    FullFilters,
    Origin,
    Recipient,
    Suspects,
    Unrequested,
)
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import snapshot_of

CLOCK_MS = 1_750_003_600_000
MINUTE_MS = 60_000

LOST: list[Found] = [(CLOCK_MS - 400_000, CLOCK_MS - 100_000, 5)]
NONE: list[Found] = []


def evidence(**found: list[Found]) -> Evidence:
    """Evidence of a bad verdict, by default of nothing."""
    kinds = ("lost", "undelivered", "unacknowledged", "recovered", "expired", "gaps")
    return Evidence(99, 99, False, True, **(dict.fromkeys(kinds, NONE) | found))


def channel(suspects: Suspects | None = None, **changes: Any) -> ChannelTotals:
    """A failing channel, which the tap `t` showed."""
    known: dict[str, Any] = {
        "first_event_ms": CLOCK_MS - 10 * 3_600_000,
        "verdict": Verdict.FAILING,
        "verdict_reason": "lost",
        "evidence": evidence(lost=LOST),
        "suspects": suspects,
        "observers": ["t"],
    }
    return ChannelTotals(**(known | changes))


def tap(*holes: tuple[int, int]) -> TapTotals:
    """A tap that is heard now, with holes of so many ms before the clock."""
    return TapTotals(
        last_seen_ms=CLOCK_MS,
        holes=[(CLOCK_MS - begin, CLOCK_MS - end) for begin, end in holes],
    )


def found(totals: ChannelTotals, **taps: TapTotals) -> list[Cause]:
    """The causes of a channel; its tap has no holes unless one is given."""
    snapshot = snapshot_of(clock_ms=CLOCK_MS, taps={"t": tap()} | taps)
    return list(causes_of(snapshot, totals, CHANNELS))


def kinds(totals: ChannelTotals, **taps: TapTotals) -> list[str]:
    """Kinds of these causes."""
    return [one.kind for one in found(totals, **taps)]


def test_failures_of_one_sender_name_it() -> None:
    """Others sent meanwhile, and their messages arrived."""
    (one,) = found(channel(Suspects(origin=Origin("alice", 5, 6, 54))))
    assert one.sentence() == (
        "all 5 lost or undelivered messages are from alice, while 54 messages of "
        "others arrived"
    )
    assert one.in_brief(str.upper) == "all from ALICE"
    assert one.as_object() == {
        "kind": "one_sender",
        "sentence": one.sentence(),
        "evidence": {
            "sender": "alice",
            "failed": 5,
            "sent": 6,
            "others_arrived": 54,
        },
    }


@pytest.mark.parametrize(
    "origin",
    [
        Origin("alice", 2, 2, 2_000),
        # It sent everything, or nearly: no cause but arithmetic.
        Origin("alice", 50, 50, 0),
        Origin("alice", 9, 100, 50),
        # One chance in 512 is too much.
        Origin("alice", 4, 10, 70),
    ],
)
def test_failures_that_may_be_of_one_sender_by_chance_name_nobody(
    origin: Origin,
) -> None:
    """Three at least, and at most one chance in a thousand."""
    assert kinds(channel(Suspects(origin=origin))) == []


def test_failures_of_one_recipient_name_it() -> None:
    """All others have the messages."""
    (one,) = found(channel(Suspects(recipient=Recipient("bob", 6, 24))))
    assert one.sentence() == (
        "only bob lacks the 6 undelivered messages: all others have them"
    )
    assert one.in_brief() == "only bob lacks messages"


@pytest.mark.parametrize(
    "recipient",
    [Recipient("bob", 2, 200), Recipient("bob", 5, 20), Recipient("b", 9, 0)],
)
def test_failures_that_may_be_of_one_recipient_by_chance_name_nobody(
    recipient: Recipient,
) -> None:
    """With two participants, all failures are those of the other one."""
    assert kinds(channel(Suspects(recipient=recipient))) == []


@pytest.mark.parametrize(
    ("age_ms", "span"),
    [(3_600_001, "for an hour"), (3_599_999, "since the first record")],
)
def test_missing_requests_name_the_time_without_any(age_ms: int, span: str) -> None:
    """Requests are remembered for an hour."""
    suspects = Suspects(unrequested=Unrequested(4, 3, 2))
    totals = channel(suspects, first_event_ms=CLOCK_MS - age_ms)
    (one,) = found(totals)
    assert one.sentence() == (
        f"nobody requests repair, so SDS-R is probably off: no request {span}, "
        "although requests for 3 messages were due"
    )


def test_few_missing_requests_say_nothing() -> None:
    """Nobody may have known of two messages."""
    suspects = Suspects(unrequested=Unrequested(9, 2, 5))
    assert kinds(channel(suspects)) == []


@pytest.mark.parametrize(
    ("abandoned", "sentence"),
    [
        (
            Abandoned(3, ["alice"], 1, 1),
            "alice stopped retrying: 3 messages without acknowledgement, resent 1 time "
            "each",
        ),
        (
            Abandoned(4, ["alice", "bob"], 2, 10),
            "2 senders stopped retrying: 4 messages without acknowledgement, resent 2 "
            "to 10 times each",
        ),
    ],
)
def test_ended_retries_name_their_number(abandoned: Abandoned, sentence: str) -> None:
    """One sender is named, several are counted."""
    failed: list[Found] = [(1, 2, 8)] if abandoned.messages == 4 else [(1, 2, 6)]
    totals = channel(
        Suspects(abandoned=abandoned), evidence=evidence(unacknowledged=failed)
    )
    (one,) = found(totals)
    assert one.sentence() == sentence


@pytest.mark.parametrize(("messages", "failed"), [(2, 2), (3, 7)])
def test_ended_retries_of_few_messages_say_nothing(messages: int, failed: int) -> None:
    """Three at least, and half of those without acknowledgement."""
    totals = channel(
        Suspects(abandoned=Abandoned(messages, ["alice"], 1, 1)),
        evidence=evidence(unacknowledged=[(1, 2, failed)]),
    )
    assert kinds(totals) == []


def saturated(full: int, others: int, **changes: Any) -> ChannelTotals:
    """A degraded channel with so many full filters, and others that are not."""
    known: dict[str, Any] = {
        "verdict": Verdict.DEGRADED,
        "verdict_reason": "bloom_saturated",
        "evidence": evidence(),
    }
    suspects = Suspects(filters=FullFilters(full, full + others, 1_000, 10))
    return channel(suspects, **(known | changes))


def test_full_filters_name_what_fits() -> None:
    """1 % is passed at 100 ids in 1,000 bits with 10 hashes."""
    (one,) = found(saturated(2, 2))
    assert one.sentence() == (
        "the filters of 2 of 4 participants are saturated: one of their size serves "
        "about 100 messages"
    )
    assert one.in_brief() == "filters saturated"


@pytest.mark.parametrize(
    "totals",
    [
        saturated(1, 0),
        saturated(2, 3),
        saturated(2, 0, verdict_reason="undelivered"),
    ],
)
def test_few_full_filters_say_nothing(totals: ChannelTotals) -> None:
    """Two, half of them, and no graver reason."""
    assert kinds(totals) == []


def failed_in_gap(since_ms: int, kind: str = "unacknowledged") -> ChannelTotals:
    """A channel in which three messages failed, by the time of the first sign."""
    failed: list[Found] = [(CLOCK_MS - since_ms, CLOCK_MS - since_ms + 120_000, 3)]
    return channel(evidence=evidence(**{kind: failed}))


@pytest.mark.parametrize("verdict", [Verdict.FAILING, Verdict.BLIND])
@pytest.mark.parametrize(
    ("kind", "since_ms"),
    [
        ("unacknowledged", 430_000),
        ("unacknowledged", 190_000),
        ("lost", 310_000),
        ("lost", 130_000),
    ],
)
def test_failures_in_a_gap_of_a_tap_name_the_tap(
    kind: str, since_ms: int, verdict: Verdict
) -> None:
    """From the deadline before a gap; what it missed may be named a minute later."""
    totals = failed_in_gap(since_ms, kind)
    totals = msgspec.structs.replace(totals, verdict=verdict)
    (one,) = found(totals, t=tap((300_000, 200_000)))
    assert one.sentence() == (
        "all 3 messages found lost or unacknowledged coincide with a capture gap of "
        "tap t, which may have missed that they arrived"
    )
    assert dict(one.evidence) == {"tap": "t", "failed": 3, "gap_ms": 100_000}


def test_gap_of_one_of_several_taps_is_named() -> None:
    """The other one is not there by whom the messages were acknowledged."""
    totals = failed_in_gap(300_000)
    totals.observers.append("u")
    (one,) = found(totals, u=tap((300_000, 200_000)))
    assert one.in_brief() == "capture gap of tap u"


@pytest.mark.parametrize(
    ("totals", "hole"),
    [
        (failed_in_gap(440_000), (300_000, 200_000)),
        (failed_in_gap(180_000), (300_000, 200_000)),
        (failed_in_gap(320_000, "lost"), (300_000, 200_000)),
        (failed_in_gap(120_000, "lost"), (300_000, 200_000)),
        # Anything coincides with a gap of more than half of the window.
        (failed_in_gap(300_000), (500_000, 190_000)),
        # No tap makes a filter lack a message.
        (failed_in_gap(300_000, "undelivered"), (300_000, 200_000)),
        (
            channel(evidence=evidence(lost=[(CLOCK_MS - 300_000, CLOCK_MS, 2)])),
            (300_000, 200_000),
        ),
    ],
)
def test_failures_beside_a_gap_do_not_name_the_tap(
    totals: ChannelTotals, hole: tuple[int, int]
) -> None:
    """All of at least three must coincide."""
    assert kinds(totals, t=tap(hole)) == []


ALL = Suspects(
    Origin("alice", 9, 9, 90),
    Recipient("bob", 9, 90),
    Unrequested(9, 9, 9),
    Abandoned(9, ["alice"], 1, 1),
)


def test_several_causes_come_together() -> None:
    """All from one to one is a link."""
    assert kinds(channel(ALL)) == [
        "one_sender",
        "one_participant",
        "no_repair_requests",
        "retries_ended",
    ]


def test_failures_that_a_tap_may_have_made_have_no_other_cause() -> None:
    """Evidence that the verdict excuses in part is not to be trusted in whole."""
    assert kinds(channel(ALL), t=tap((500_000, 180_000))) == []


@pytest.mark.parametrize(
    "verdict", [Verdict.OK, Verdict.QUIET, Verdict.WARMING_UP, Verdict.BLIND]
)
def test_verdict_that_is_no_trouble_has_no_cause(verdict: Verdict) -> None:
    """Nor has a blind channel, unless it is the tap."""
    assert kinds(channel(ALL, verdict=verdict)) == []


def test_totals_of_an_earlier_release_have_no_cause() -> None:
    """They have no suspects, and before 0.8 no evidence."""
    assert kinds(channel(None)) == []
    assert kinds(channel(ALL, evidence=None)) == []


@pytest.mark.parametrize("shown", [str, str.upper])
def test_names_of_strangers_format_nothing(shown: Callable[[str], str]) -> None:
    """A participant may be called `{0}`."""
    (one,) = found(channel(Suspects(recipient=Recipient("{0}{x}", 9, 90))))
    assert shown("{0}{x}") in one.sentence(shown)
