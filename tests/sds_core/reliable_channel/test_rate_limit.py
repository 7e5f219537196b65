"""The budget of messages per epoch: levels, windows, priorities, restarts."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from sds_core.reliable_channel.errors import StateError
from sds_core.reliable_channel.events import DropReason
from sds_core.reliable_channel.rate_limit import (
    Budget,
    RateLimit,
    RateLimitOptions,
    Urgency,
    Window,
)
from tests.support.frames import SECOND

OPTIONS = RateLimitOptions(messages_per_epoch=10, epoch_ms=60 * SECOND)
EPOCH = OPTIONS.epoch_ms
BEGIN = 29_000_000 * EPOCH
"""Begin of an epoch, Unix ms."""

BOTH_WINDOWS = [replace(OPTIONS, window=window) for window in Window]


def spent(options: RateLimitOptions, messages: int, now_ms: int = BEGIN) -> RateLimit:
    """A rate limit of which so many messages have been taken."""
    limit = RateLimit(options)
    taken = [limit.take(Urgency.FIRST, now_ms) for _ in range(messages)]
    assert all(taken)
    return limit


def by_window(options: RateLimitOptions) -> str:
    """Id of a parameter."""
    return str(options.window)


def test_defaults_are_those_of_the_waku_network() -> None:
    """100 messages in ten minutes; approached at 90."""
    options = RateLimitOptions()
    assert (options.messages_per_epoch, options.epoch_ms) == (100, 600 * SECOND)
    assert options.approached_messages == 90


@pytest.mark.parametrize(
    ("used", "allowed"),
    [(0, set(Urgency)), (8, set(Urgency)), (9, {Urgency.FIRST}), (10, set())],
)
@pytest.mark.parametrize("options", BOTH_WINDOWS, ids=by_window)
@pytest.mark.rule("rc-rate-queued", "rc-rate-ephemeral", "rc-rate-retries")
def test_what_is_sent_depends_on_how_much_is_spent(
    options: RateLimitOptions, used: int, allowed: set[Urgency]
) -> None:
    """New content until the end, all else until the limit is approached."""
    limit = spent(options, used)
    assert limit.used(BEGIN) == used
    assert {one for one in Urgency if limit.allows(one, BEGIN)} == allowed
    for urgency in set(Urgency) - allowed:
        assert not limit.take(urgency, BEGIN)
    assert limit.used(BEGIN) == used


@pytest.mark.rule("rc-rate-ephemeral")
@pytest.mark.parametrize(
    ("used", "reason"),
    [
        (8, None),
        (9, "rate_limit_approached"),
        (10, "rate_limit_reached"),
    ],
)
def test_the_reason_of_a_drop_is_that_of_the_document(
    used: int, reason: str | None
) -> None:
    """Its texts name how much is spent."""
    assert spent(OPTIONS, used).drop_reason(BEGIN) == reason


@pytest.mark.rule("rc-rate-threshold")
@pytest.mark.parametrize(
    ("budget", "share", "expected"),
    [
        (10, 0.5, 5),
        # In floating point the product is just above 7.
        (10, 0.7, 7),
        (10, 1.0, 10),
        (15, 0.9, 14),
        # One message an epoch, as in 17/WAKU2-RLN-RELAY: it may be any.
        (1, 0.9, 1),
    ],
)
def test_the_share_that_counts_as_approached_is_an_option(
    budget: int, share: float, expected: int
) -> None:
    """Fractions are rounded up."""
    options = replace(OPTIONS, messages_per_epoch=budget, approached_share=share)
    assert options.approached_messages == expected
    before = spent(options, expected - 1)
    assert before.allows(Urgency.AGAIN, BEGIN)
    assert before.take(Urgency.DROPPABLE, BEGIN)
    assert not before.allows(Urgency.AGAIN, BEGIN)


@pytest.mark.rule("rc-seg-epochs")
def test_an_epoch_renews_the_whole_budget() -> None:
    """At its begin, as RLN counts, whenever the messages were sent."""
    limit = spent(OPTIONS, 10, BEGIN + EPOCH - 1)
    assert limit.renewed_ms(BEGIN + EPOCH - 1) == BEGIN + EPOCH
    assert limit.used(BEGIN + EPOCH - 1) == 10
    assert limit.used(BEGIN + EPOCH) == 0


@pytest.mark.parametrize(
    ("options", "sent"), list(zip(BOTH_WINDOWS, (20, 10), strict=True))
)
def test_only_a_sliding_window_prevents_a_double_burst(
    options: RateLimitOptions, sent: int
) -> None:
    """The last millisecond of an epoch and the first of the next."""
    limit = spent(options, 10, BEGIN + EPOCH - 1)
    more = sum(limit.take(Urgency.FIRST, BEGIN + EPOCH) for _ in range(100))
    assert 10 + more == sent


def test_a_sliding_window_frees_each_message_by_itself() -> None:
    """An epoch after it was sent."""
    options = replace(OPTIONS, window=Window.SLIDING)
    limit = RateLimit(options)
    for second in range(10):
        assert limit.take(Urgency.FIRST, BEGIN + second * SECOND)
    now_ms = BEGIN + 10 * SECOND
    assert limit.renewed_ms(now_ms) == BEGIN + EPOCH
    assert not limit.allows(Urgency.FIRST, BEGIN + EPOCH - 1)
    assert limit.drop_reason(BEGIN + EPOCH) is DropReason.RATE_LIMIT_APPROACHED
    # The next class is sent when less than nine are left.
    assert limit.renewed_ms(BEGIN + EPOCH) == BEGIN + EPOCH + SECOND
    assert limit.drop_reason(BEGIN + EPOCH + SECOND) is None
    assert limit.renewed_ms(BEGIN + EPOCH + SECOND) == BEGIN + EPOCH + 2 * SECOND
    assert limit.renewed_ms(BEGIN + EPOCH + 9 * SECOND) == inf


@pytest.mark.parametrize("options", BOTH_WINDOWS, ids=by_window)
def test_nothing_is_renewed_if_nothing_is_spent(options: RateLimitOptions) -> None:
    """There is no time to wait for."""
    assert RateLimit(options).renewed_ms(BEGIN) == inf


@pytest.mark.parametrize("options", BOTH_WINDOWS, ids=by_window)
def test_a_budget_of_zero_sends_nothing(options: RateLimitOptions) -> None:
    """Ever."""
    limit = RateLimit(replace(options, messages_per_epoch=0))
    assert not any(limit.take(one, BEGIN) for one in Urgency)
    assert limit.drop_reason(BEGIN) is DropReason.RATE_LIMIT_REACHED
    assert limit.renewed_ms(BEGIN) == inf
    limit.restore(spent(options, 3).state())
    assert limit.renewed_ms(BEGIN) == inf


@pytest.mark.rule("rc-rate-queued")
@pytest.mark.parametrize("options", BOTH_WINDOWS, ids=by_window)
def test_a_restart_does_not_renew_the_budget(options: RateLimitOptions) -> None:
    """The state has what was spent in the epoch."""
    state = spent(options, 9, BEGIN + SECOND).state()
    limit = RateLimit(options)
    limit.restore(state)
    assert limit.used(BEGIN + 2 * SECOND) == 9
    assert limit.used(BEGIN + SECOND + EPOCH) == 0


def test_a_restart_may_have_another_budget() -> None:
    """What was sent counts, also if it is more than is allowed now."""
    limit = RateLimit(replace(OPTIONS, messages_per_epoch=4, window=Window.SLIDING))
    state = spent(OPTIONS, 10, BEGIN)
    limit.restore(state.state())
    assert limit.drop_reason(BEGIN + 1) is DropReason.RATE_LIMIT_REACHED
    assert limit.renewed_ms(BEGIN + 1) == BEGIN + EPOCH


@pytest.mark.parametrize("options", BOTH_WINDOWS, ids=by_window)
@pytest.mark.parametrize("ahead", [EPOCH // 2, 365 * 86_400 * SECOND])
def test_a_clock_that_was_ahead_before_the_restart_costs_no_epoch(
    options: RateLimitOptions, ahead: int
) -> None:
    """It gives no second budget either, in the epoch of the restart."""
    limit = RateLimit(options)
    limit.restore(spent(options, 9, BEGIN + ahead).state())
    limit.set_back(ahead)
    assert limit.used(BEGIN) == 9
    assert limit.take(Urgency.FIRST, BEGIN + 1)
    assert limit.used(BEGIN + EPOCH - 1) == 10
    assert limit.used(BEGIN + EPOCH + 1) == 0


def test_channel_may_get_a_limit_after_a_restart() -> None:
    """It had none, so it counted no messages."""
    limit = RateLimit(RateLimitOptions(messages_per_epoch=2))
    limit.restore(Budget().state())
    assert limit.used(0) == 0


@pytest.mark.parametrize("state", [b"\xc1", b"\x91\xa1a", b"\x80"])
def test_a_damaged_state_is_refused(state: bytes) -> None:
    """And names its part."""
    with pytest.raises(StateError, match="of the rate limit"):
        RateLimit(OPTIONS).restore(state)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("messages_per_epoch", -1),
        ("epoch_ms", 0),
        ("approached_share", 0.0),
        ("approached_share", 1.1),
    ],
)
def test_rate_options_out_of_range_are_refused(option: str, value: float) -> None:
    """The error names option and value."""
    with pytest.raises(ValueError, match=f"{option} is {value}, but must be "):
        replace(OPTIONS, **{option: value})


def test_it_is_the_budget_that_a_channel_asks() -> None:
    """The type checker compares the methods."""
    budget: Budget = RateLimit(OPTIONS)
    assert budget.take(Urgency.FIRST, BEGIN)
