"""Times of repair requests and responses (docs/figures.md, 7).

The hashes of js-waku give, for the message `MID` and the times 30 s and 120 s: T_req of
alice 99,676 ms and of bob 64,341 ms; T_resp of bob for alice's message 3,226 ms, and of
alice for her own 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sds_core.observer.sds.timing import RepairTiming
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import DEFAULTS
from sds_core.wire import Dialect
from tests.support.channel import START_LAMPORT, Channel

MID = "0" * 63 + "1"

T_REQ = {"alice": 99_676, "bob": 64_341}
T_RESP_BOB = 3_226

TRANSPORT = 5_000
"""A request or a response may be seen so much nearer to what it follows."""

SWEEP = 10_000
"""And a response so much later, since holders look at their queue now and then."""

T0 = 60_000


@pytest.fixture
def channel() -> Channel:
    """A channel that has warmed up, at 60 s."""
    return Channel.after_warm_up()


def requests(channel: Channel) -> tuple[int, int]:
    """Requests that were checked, and those that were early."""
    return channel.totals.requests_timed, channel.totals.requests_early


def responses(channel: Channel) -> tuple[int, int]:
    """Responses that were checked, and those that no participant's time explains."""
    return channel.totals.responses_timed, channel.totals.responses_unexplained


# By hash.


@pytest.mark.parametrize(("requester", "offset_ms"), T_REQ.items())
@pytest.mark.parametrize(("sooner_ms", "early"), [(0, 0), (1, 1)])
def test_request_may_come_from_its_t_req_on(
    requester: str, offset_ms: int, sooner_ms: int, early: int
) -> None:
    """Less the transport time: the tap may see the message later."""
    totals = ChannelTotals()
    timing = RepairTiming(DEFAULTS, totals)
    timing.requested(requester, MID, 0, offset_ms - TRANSPORT - sooner_ms)
    assert (totals.requests_timed, totals.requests_early) == (1, early)


@pytest.mark.parametrize("t_min_ms", [120_000, 180_000])
def test_t_req_is_t_min_if_t_max_is_not_above_it(t_min_ms: int) -> None:
    """A checkpoint of an older release may have such settings."""
    totals = ChannelTotals()
    timing = RepairTiming(replace(DEFAULTS, t_min_ms=t_min_ms), totals)
    for message_id, sooner_ms in ((MID, 0), ("other", 1)):
        at_ms = t_min_ms - TRANSPORT - sooner_ms
        timing.requested("alice", message_id, 0, at_ms)
    assert (totals.requests_timed, totals.requests_early) == (2, 1)


def test_request_long_after_its_t_req_is_not_early() -> None:
    """The requester may notice the gap later than the tap."""
    totals = ChannelTotals()
    RepairTiming(DEFAULTS, totals).requested("bob", MID, 0, 10_000_000)
    assert (totals.requests_timed, totals.requests_early) == (1, 0)


@pytest.mark.parametrize(
    ("participants", "waits_ms", "unexplained"),
    [
        ([], [-TRANSPORT], 0),
        ([], [-TRANSPORT - 1], 1),
        ([], [SWEEP + TRANSPORT], 0),
        ([], [SWEEP + TRANSPORT + 1], 1),
        (["bob"], [T_RESP_BOB + SWEEP + TRANSPORT], 0),
        (["bob"], [T_RESP_BOB + SWEEP + TRANSPORT + 1], 1),
        (["alice"], [SWEEP + TRANSPORT + 1], 1),
        # Any of the requests may be the one that it answers.
        ([], [90_000, 15_000], 0),
        ([], [90_000, 15_001], 1),
    ],
)
def test_response_at_the_time_of_a_participant_is_explained(
    participants: list[str], waits_ms: Sequence[int], unexplained: int
) -> None:
    """The sender may respond at once; other times follow from the hashes."""
    totals = ChannelTotals()
    timing = RepairTiming(DEFAULTS, totals)
    asked_ms = [1_000_000 - wait_ms for wait_ms in waits_ms]
    timing.responded("alice", MID, asked_ms, participants, 1_000_000)
    assert (totals.responses_timed, totals.responses_unexplained) == (1, unexplained)


# In a channel: what can be checked.


@pytest.mark.parametrize(("sooner_ms", "early"), [(0, 0), (1, 1)])
def test_request_for_a_seen_message_runs_from_its_t0(
    channel: Channel, sooner_ms: int, early: int
) -> None:
    """No participant can notice earlier that it is missing."""
    channel.content(MID, "alice", at=T0)
    at = T0 + T_REQ["bob"] - TRANSPORT - sooner_ms
    channel.sync("bob", at=at, requests=[MID])
    assert requests(channel) == (1, early)


@pytest.mark.parametrize(("sooner_ms", "early"), [(0, 0), (1, 1)])
def test_request_for_an_unseen_message_runs_from_its_naming_by_another(
    channel: Channel, sooner_ms: int, early: int
) -> None:
    """The requester's own naming does not count."""
    channel.content("anchor", "anna", at=T0, lamport=START_LAMPORT + 1)
    channel.sync("bob", at=T0, history=["anchor", MID])
    channel.sync("carol", at=T0 + 7_000, history=["anchor", MID])
    at = T0 + 7_000 + T_REQ["bob"] - TRANSPORT - sooner_ms
    channel.sync("bob", at=at, requests=[MID])
    assert requests(channel) == (1, early)


def test_only_the_first_request_of_each_participant_is_checked(
    channel: Channel,
) -> None:
    """Later requests follow other rules."""
    channel.content(MID, "carol", at=T0)
    channel.sync("bob", at=T0 + 1, requests=[MID])
    channel.sync("bob", at=T0 + 2, requests=[MID])
    assert requests(channel) == (1, 1)
    channel.sync("alice", at=T0 + T_REQ["alice"], requests=[MID])
    assert requests(channel) == (2, 1)


def test_request_that_cannot_be_timed_is_left_out(channel: Channel) -> None:
    """Other dialect, unknown sender, own message, or an id nobody else named."""
    channel.content(MID, "alice", at=T0)
    channel.sync("nia", at=T0 + 1, requests=[MID], dialect=Dialect.NIM)
    channel.sync("", at=T0 + 1, requests=[MID])
    channel.sync("alice", at=T0 + 1, requests=[MID])
    channel.sync("bob", at=T0 + 1, requests=["unheard of"])
    assert channel.totals.repair_requests == 4
    assert requests(channel) == (0, 0)


def test_request_for_what_was_named_before_it_was_seen_is_left_out(
    channel: Channel,
) -> None:
    """It is unknown when the requester could know of the message."""
    channel.content("anchor", "anna", at=T0, lamport=START_LAMPORT + 1)
    channel.sync("carol", at=T0, history=["anchor", MID])
    channel.content(MID, "alice", at=T0 + 100_000)
    channel.sync("bob", at=T0 + 100_001, requests=[MID])
    assert requests(channel) == (0, 0)


@pytest.mark.parametrize(
    ("wait_ms", "unexplained"),
    [(SWEEP + TRANSPORT, 0), (SWEEP + TRANSPORT + 1, 1)],
)
@pytest.mark.parametrize("first_ms", [0, 60_000])
def test_response_runs_from_any_request_for_it(
    channel: Channel, wait_ms: int, unexplained: int, first_ms: int
) -> None:
    """Only the sender is known here, so no other participant explains it."""
    frame = channel.content(MID, "alice", at=T0, waku_hash="1")
    # A request of nobody is one all the same.
    channel.sync("", at=T0 + 1_000, requests=[MID])
    channel.sync("", at=T0 + 1_000 + first_ms, requests=[MID])
    channel.take(frame, at=T0 + 1_000 + first_ms + wait_ms, waku_hash="2")
    assert channel.totals.repair_answered == 1
    assert responses(channel) == (1, unexplained)


@pytest.mark.parametrize(("later_ms", "unexplained"), [(0, 0), (1, 1)])
def test_response_may_be_of_any_known_participant(
    channel: Channel, later_ms: int, unexplained: int
) -> None:
    """Also of a participant that only a history names."""
    frame = channel.content(MID, "alice", at=T0, waku_hash="1")
    channel.sync("", at=T0 + 1, history=[("x", "bob")])
    channel.sync("", at=T0 + 1_000, requests=[MID])
    at = T0 + 1_000 + T_RESP_BOB + SWEEP + TRANSPORT + later_ms
    channel.take(frame, at=at, waku_hash="2")
    assert responses(channel) == (1, unexplained)


def test_first_copy_may_be_a_response(channel: Channel) -> None:
    """The tap missed the first broadcast; redundant responses are checked too."""
    channel.sync("", at=T0, requests=[MID])
    frame = channel.content(MID, "alice", at=T0 + 20_000, waku_hash="1")
    assert responses(channel) == (1, 1)
    channel.take(frame, at=T0 + 30_000, waku_hash="2")
    assert channel.totals.repair_redundant == 1
    assert responses(channel) == (2, 2)


def test_response_that_cannot_be_timed_is_left_out(channel: Channel) -> None:
    """Other dialect, or a message without a sender."""
    channel.sync("", at=T0, requests=["n", "m"])
    channel.content("n", "nia", at=T0 + 50_000, dialect=Dialect.NIM)
    channel.content("m", "", at=T0 + 50_000)
    assert channel.totals.repair_answered == 2
    assert responses(channel) == (0, 0)
