"""Python participants and real `@waku/sds` ones repair each other's losses.

All in virtual time on one channel: names that begin with j are js, those that begin
with p are Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from hashlib import sha256

import pytest

from sds_core.message_channel import Cause, Profile
from sds_core.message_channel.repair import request_offset_ms, response_offset_ms
from sds_core.wire import FrameKind
from tests.support.interop.channel import lost_to
from tests.support.interop.host import What
from tests.support.interop.square import OpenSquare
from tests.support.interop.terms import (
    JS_SDS,
    LASTING_PROFILES,
    REPAIR_MS,
    SETTLE_MS,
    SWEEP_MS,
    both_ways,
)

pytestmark = pytest.mark.node


def text_where(holds: Callable[[str], bool]) -> str:
    """Return a text for whose id this holds, as `@waku/sds` makes the id."""
    texts = (f"text {number}" for number in itertools.count())
    return next(one for one in texts if holds(sha256(one.encode()).hexdigest()))


@pytest.mark.parametrize(
    ("author", "asker", "answerer"),
    [
        ("pia", "jon", "pat"),
        ("jen", "jon", "pat"),
        ("pia", "pat", "jon"),
        ("jen", "pat", "jon"),
    ],
)
def test_another_participant_repairs_for_an_absent_sender(
    open_square: OpenSquare, author: str, asker: str, answerer: str
) -> None:
    """Named in a history, requested after T_req, sent with the same bytes."""
    channel = open_square(author, asker, answerer).channel
    channel.losses.append(lost_to(asker, "first", Cause.CONTENT, Cause.RETRY))
    first = channel.say(author, "first")
    channel.run(SETTLE_MS)
    channel.leave(author)
    second = channel.say(answerer, "second")
    channel.run(SETTLE_MS)
    assert channel.noted(What.MISSING, asker) == [first]
    assert channel.log(asker) == []
    channel.run(REPAIR_MS)
    assert channel.log(asker) == channel.noted(What.DELIVERED, asker) == [first, second]
    [request] = channel.requests(first)
    assert request.by == asker
    noticed_ms = channel.when(What.MISSING, asker, first)
    assert request.at_ms >= noticed_ms + request_offset_ms(asker, first, JS_SDS)
    [repair] = channel.sent(Cause.REPAIR)
    assert (repair.by, repair.frame.message_id) == (answerer, first)
    assert repair.value == channel.sent(Cause.CONTENT)[0].value
    t_resp_ms = request.at_ms + response_offset_ms(answerer, author, first, JS_SDS)
    assert 0 <= repair.at_ms - t_resp_ms <= SETTLE_MS + SWEEP_MS
    assert channel.noted(What.ANSWERED, answerer) == [first]


@both_ways
def test_original_sender_answers_first(
    open_square: OpenSquare, speaker: str, listener: str
) -> None:
    """Its T_resp is 0, and its answer cancels those of others."""
    bystanders = {"pat": "jen", "jon": "pia"}
    names = (speaker, listener, bystanders[speaker])
    channel = open_square(*names).channel
    channel.losses.append(lost_to(listener, "first", Cause.CONTENT, Cause.RETRY))
    first = channel.say(speaker, "first")
    channel.run(SETTLE_MS)
    channel.say(bystanders[speaker], "second")
    channel.run(REPAIR_MS)
    assert first in channel.log(listener)
    assert [repair.by for repair in channel.sent(Cause.REPAIR)] == [speaker]


@pytest.mark.parametrize(("quick", "slow"), [("pat", "jon"), ("jon", "pat")])
@pytest.mark.parametrize("asker", ["pia", "jen"])
def test_received_answer_cancels_the_own_answer(
    open_square: OpenSquare, asker: str, quick: str, slow: str
) -> None:
    """Of two holders only the one with the earlier T_resp answers."""
    author = "joy"

    def comes_well_before(message_id: str) -> bool:
        quick_ms, slow_ms = (
            response_offset_ms(name, author, message_id, JS_SDS)
            for name in (quick, slow)
        )
        return quick_ms + 2 * SWEEP_MS < slow_ms

    text = text_where(comes_well_before)
    channel = open_square(author, asker, quick, slow).channel
    channel.losses.append(lost_to(asker, text, Cause.CONTENT, Cause.RETRY))
    first = channel.say(author, text)
    channel.run(SETTLE_MS)
    channel.leave(author)
    channel.say(slow, "second")
    channel.run(REPAIR_MS)
    assert channel.noted(What.MISSING, asker) == [first]
    assert first in channel.log(asker)
    assert [repair.by for repair in channel.sent(Cause.REPAIR)] == [quick]


@pytest.mark.parametrize(("quick", "slow"), [("pat", "jon"), ("jon", "pat")])
def test_received_request_cancels_the_own_request(
    open_square: OpenSquare, quick: str, slow: str
) -> None:
    """Of two that miss a message, the one with the earlier T_req requests it."""
    author, holder = "joy", "pia"

    def t_req_ms(name: str, message_id: str) -> int:
        return request_offset_ms(name, message_id, JS_SDS)

    def is_answered_between(message_id: str) -> bool:
        """After the later one's turn, before it would come again."""
        quick_ms, slow_ms = t_req_ms(quick, message_id), t_req_ms(slow, message_id)
        answer_ms = response_offset_ms(holder, author, message_id, JS_SDS)
        return (
            quick_ms + SWEEP_MS < slow_ms
            and slow_ms + SWEEP_MS < quick_ms + answer_ms
            and answer_ms + 2 * SWEEP_MS < slow_ms
        )

    text = text_where(is_answered_between)
    channel = open_square(author, holder, quick, slow).channel
    for asker in (quick, slow):
        channel.losses.append(lost_to(asker, text, Cause.CONTENT, Cause.RETRY))
    first = channel.say(author, text)
    channel.run(SETTLE_MS)
    channel.leave(author)
    channel.say(holder, "second")
    channel.run(SETTLE_MS)
    for asker in (quick, slow):
        assert channel.noted(What.MISSING, asker) == [first]
    # Words can carry a request, should no sync message have done so yet.
    channel.run(t_req_ms(quick, first))
    channel.say(quick, "third")
    channel.run(t_req_ms(slow, first) - t_req_ms(quick, first))
    channel.say(slow, "fourth")
    assert channel.sent(Cause.REPAIR) == []
    channel.run(REPAIR_MS)
    assert [request.by for request in channel.requests(first)] == [quick]
    for asker in (quick, slow):
        assert first in channel.log(asker)


@both_ways
@pytest.mark.parametrize("profile", LASTING_PROFILES.values(), ids=LASTING_PROFILES)
def test_sync_message_reveals_a_lost_last_message(
    open_square: OpenSquare, speaker: str, listener: str, profile: Profile
) -> None:
    """No content follows it, and its retries are lost as well."""
    channel = open_square(speaker, listener, profile=profile).channel
    before = channel.say(speaker, "before")
    channel.run(SETTLE_MS)
    channel.losses.append(lost_to(listener, "last", Cause.CONTENT, Cause.RETRY))
    last = channel.say(speaker, "last")
    channel.run(REPAIR_MS)
    assert channel.noted(What.MISSING, listener) == [last]
    noticed_ms = channel.when(What.MISSING, listener, last)
    assert FrameKind.CONTENT not in {
        sending.frame.kind
        for sending in channel.sendings
        if sending.at_ms < noticed_ms and sending.frame.message_id not in (before, last)
    }
    assert channel.log(listener) == channel.log(speaker) == [before, last]
    assert last in channel.noted(What.ACKNOWLEDGED, speaker)


@pytest.mark.parametrize(
    ("participant", "message", "offset_ms"),
    [("alice", "1", 99_676), ("bob", "1", 64_341)],
)
def test_t_req_is_that_of_js(participant: str, message: str, offset_ms: int) -> None:
    """For ids of 64 digits, as js-waku's RepairManager computes it."""
    assert request_offset_ms(participant, message.zfill(64), JS_SDS) == offset_ms


@pytest.mark.parametrize(("participant", "offset_ms"), [("alice", 0), ("bob", 3_226)])
def test_t_resp_is_that_of_js(participant: str, offset_ms: int) -> None:
    """For a message of alice, as js-waku's RepairManager computes it."""
    message_id = "1".zfill(64)
    found_ms = response_offset_ms(participant, "alice", message_id, JS_SDS)
    assert found_ms == offset_ms
