"""A channel under a rate limit: what waits, what is dropped, in which order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.message_channel import Cause
from sds_core.reliable_channel import (
    Advance,
    Dispatched,
    EphemeralMessageDropped,
    Limits,
    MessageAcknowledged,
    MessageReceived,
    RateLimitOptions,
    RateLimitReached,
    ReliableChannelCore,
    Restarted,
    Send,
    SendEphemeral,
    Start,
    Window,
)
from sds_core.reliable_channel.events import DropReason
from sds_core.reliable_channel.options import ReliableChannelOptions
from sds_core.reliable_channel.outward import Outward, Queued, Unframed
from sds_core.reliable_channel.rate_limit import Budget, RateLimit, Urgency
from sds_core.reliable_channel.tape import TapedEncryption
from tests.support.frames import MINUTE, START_MS
from tests.support.properties import CAREFUL
from tests.support.reliable_channel import (
    ONLINE,
    OPTIONS,
    SMALL_SEGMENTS,
    emitted,
    network,
    of_kind,
    sent,
    started,
)

TEN = RateLimitOptions(messages_per_epoch=10, epoch_ms=MINUTE)
LIMITED = replace(
    OPTIONS,
    segmentation=SMALL_SEGMENTS,
    rate_limit=TEN,
    # Only what the application sends.
    sync_min_interval_ms=0,
    max_retry_attempts=0,
)
EPOCH_BEGIN_MS = START_MS - START_MS % TEN.epoch_ms


def payload(segments: int) -> bytes:
    """One of so many segments."""
    return bytes(
        number % 251 for number in range(segments * SMALL_SEGMENTS.share_bytes)
    )


def after(alone: ReliableChannelCore, messages: int) -> ReliableChannelCore:
    """A channel that has sent so many messages."""
    for number in range(messages):
        (dispatch,) = alone.apply(Send(b"%d" % number), START_MS).dispatches
        alone.apply(Dispatched(dispatch.number), START_MS)
    return alone


@pytest.mark.rule("rc-rate-queued", "rc-rate-segments", "rc-seg-rate")
@pytest.mark.rule("rc-seg-epochs")
def test_segments_beyond_the_budget_wait_for_the_next_epochs() -> None:
    """25 segments take three epochs of ten, and arrive as one message."""
    net = network("alice", "bob", options=LIMITED)
    net.apply("alice", Send(payload(25)))
    net.run(5 * MINUTE)
    epochs = Counter(
        one.at_ms // TEN.epoch_ms for one in sent(net) if one.by == "alice"
    )
    assert sorted(epochs.values(), reverse=True) == [10, 10, 5]
    assert max(epochs) - min(epochs) == 2
    assert emitted(net, "bob", MessageReceived) == [
        MessageReceived(payload(25), "alice")
    ]


@pytest.mark.rule("rc-rate-events")
def test_a_reached_limit_is_an_event() -> None:
    """One for all that wait, not one for each."""
    alice = started(options=LIMITED)
    events = alice.apply(Send(payload(14)), START_MS).events
    assert of_kind(events, RateLimitReached) == [RateLimitReached(4)]
    more = alice.apply(Send(b"more"), START_MS)
    assert of_kind(more.events, RateLimitReached) == []
    assert more.dispatches == []


@pytest.mark.rule("rc-rate-ephemeral")
@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (8, None),
        (9, DropReason.RATE_LIMIT_APPROACHED),
        (10, DropReason.RATE_LIMIT_REACHED),
    ],
)
def test_ephemeral_messages_are_dropped_from_nine_tenths_on(
    before: int, reason: DropReason | None
) -> None:
    """Neither sent nor queued: the next epoch does not send them either."""
    alice = after(started(options=LIMITED), before)
    output = alice.apply(SendEphemeral(b"typing"), START_MS)
    assert len(output.dispatches) == (reason is None)
    dropped = of_kind(output.events, EphemeralMessageDropped)
    assert [one.reason for one in dropped] == ([reason] if reason else [])
    later = alice.apply(Advance(), EPOCH_BEGIN_MS + 2 * TEN.epoch_ms)
    assert later.dispatches == []


@pytest.mark.rule("rc-rate-retries")
def test_retries_wait_when_the_limit_is_approached() -> None:
    """New content takes the last slot before them."""
    options = replace(LIMITED, max_retry_attempts=1, retry_interval_ms=1_000)
    alice = after(started(options=options), 9)
    due_ms = int(alice.next_deadline_ms)
    assert alice.apply(Advance(), due_ms).dispatches == []
    (new,) = alice.apply(Send(b"new"), due_ms).dispatches
    assert new.cause is Cause.CONTENT
    next_ms = EPOCH_BEGIN_MS + TEN.epoch_ms
    again = alice.apply(Advance(), next_ms).dispatches
    assert {one.cause for one in again} == {Cause.RETRY}
    assert len(again) == TEN.approached_messages


@pytest.mark.rule("rc-rate-queued")
def test_a_message_waits_for_its_epoch_to_the_millisecond() -> None:
    """The channel asks to be called then."""
    alice = after(started(options=LIMITED), 10)
    alice.apply(Send(b"waits"), START_MS)
    next_ms = EPOCH_BEGIN_MS + TEN.epoch_ms
    assert alice.apply(Advance(), next_ms - 1).dispatches == []
    assert alice.next_deadline_ms <= next_ms
    assert len(alice.apply(Advance(), next_ms).dispatches) == 1


@pytest.mark.rule("rc-rate-queued")
def test_a_clock_that_was_ahead_before_a_restart_renews_no_budget() -> None:
    """Nor does a message wait until the clock is there again."""
    alice = after(started(options=LIMITED), 10)
    now_ms = START_MS - 60 * MINUTE
    for one in (Restarted(), Start(), ONLINE):
        alice.apply(one, now_ms)
    assert alice.apply(Send(b"waits"), now_ms).dispatches == []
    next_ms = EPOCH_BEGIN_MS - 60 * MINUTE + TEN.epoch_ms
    assert alice.apply(Advance(), next_ms - 1).dispatches == []
    assert len(alice.apply(Advance(), next_ms).dispatches) == 1


def test_without_a_limit_nothing_waits() -> None:
    """The default, for networks without RLN."""
    assert OPTIONS.rate_limit is None
    after(started(), 300)
    unlimited = Budget()
    assert all(unlimited.take(one, START_MS) for one in Urgency)
    assert unlimited.drop_reason(START_MS) is None


def test_messages_are_acknowledged_although_the_budget_is_small() -> None:
    """Sync messages and retries of both are within it too."""
    options = replace(OPTIONS, rate_limit=replace(TEN, messages_per_epoch=4))
    net = network("alice", "bob", options=options)
    for _ in range(12):
        net.apply("alice", Send(b"tea"))
    net.run(30 * MINUTE)
    assert len(emitted(net, "alice", MessageAcknowledged)) == 12
    epochs = Counter((one.by, one.at_ms // TEN.epoch_ms) for one in sent(net))
    assert max(epochs.values()) <= 4


@CAREFUL
@given(
    frames=st.lists(
        st.tuples(
            st.integers(0, 40),
            st.sampled_from([Cause.CONTENT, Cause.RETRY, Cause.REPAIR, Cause.SYNC]),
        ),
        max_size=60,
    ),
    window=st.sampled_from(Window),
    share=st.sampled_from([0.5, 0.9, 1.0]),
)
@pytest.mark.rule("rc-rate-queued")
def test_everything_is_sent_in_order_within_its_class_and_the_budget(
    frames: list[tuple[int, Cause]], window: Window, share: float
) -> None:
    """New content before the rest, each in the order in which it came."""
    options = RateLimitOptions(
        messages_per_epoch=5, epoch_ms=100, approached_share=share, window=window
    )
    outward = Outward(
        "/a/1/b/proto",
        "/waku/2/rs/1/0",
        TapedEncryption(None),
        RateLimit(options),
        ReliableChannelOptions(limits=Limits(queue=100, queue_bytes=10**6)),
    )
    outward.is_online = True
    now_ms = START_MS
    released = []

    def frame(chunk: Unframed) -> Queued:
        return outward.encrypted(Cause.CONTENT, chunk.message_id, chunk.content)

    for number, (passed_ms, cause) in enumerate(frames):
        now_ms += passed_ms
        if cause is Cause.CONTENT:
            outward.wait(Unframed(str(number), 0, b"%d" % number))
        else:
            outward.submit(cause, str(number), b"%d" % number)
        released += [(now_ms, one) for one in outward.release(now_ms, frame)]
    while len(outward):
        assert outward.next_ms(now_ms) > now_ms
        now_ms = int(outward.next_ms(now_ms))
        released += [(now_ms, one) for one in outward.release(now_ms, frame)]
    numbers = [(int(one.message.payload), one.cause) for _, one in released]
    assert sorted(numbers) == [(at, cause) for at, (_, cause) in enumerate(frames)]
    for is_content in (True, False):
        order = [at for at, cause in numbers if (cause is Cause.CONTENT) is is_content]
        assert order == sorted(order)
    times = [at_ms for at_ms, _ in released]
    assert all(one <= other for one, other in pairwise(times))
    assert max(Counter(at // 100 for at in times).values(), default=0) <= 5
