"""Properties of rate limits for any requests at any times."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.reliable_channel.events import DropReason
from sds_core.reliable_channel.rate_limit import (
    RateLimit,
    RateLimitOptions,
    Urgency,
    Window,
)
from tests.support.frames import START_MS
from tests.support.properties import CAREFUL

limits = st.builds(
    RateLimitOptions,
    messages_per_epoch=st.integers(1, 12),
    epoch_ms=st.sampled_from([100, 1_000]),
    approached_share=st.sampled_from([0.1, 0.5, 0.9, 1.0]),
    window=st.sampled_from(Window),
)
requests = st.lists(
    st.tuples(
        st.one_of(st.just(0), st.integers(0, 30), st.integers(0, 2_500)),
        st.sampled_from(Urgency),
        # Whether the process restarts before.
        st.sampled_from([False, False, False, True]),
    ),
    max_size=80,
)


@CAREFUL
@given(options=limits, requests=requests)
def test_no_epoch_has_more_messages_than_the_budget(
    options: RateLimitOptions, requests: list[tuple[int, Urgency, bool]]
) -> None:
    """Across restarts; with the sliding window no time of its length has."""
    limit = RateLimit(options)
    sent: list[tuple[int, Urgency]] = []
    now_ms = START_MS
    for passed_ms, urgency, restarts in requests:
        now_ms += passed_ms
        if restarts:
            state = limit.state()
            limit = RateLimit(options)
            limit.restore(state)
        expected = limit.allows(urgency, now_ms)
        assert limit.take(urgency, now_ms) is expected
        if expected:
            sent.append((now_ms, urgency))
    epoch_ms, budget = options.epoch_ms, options.messages_per_epoch
    for first_ms, _ in sent:
        begin_ms = first_ms
        if options.window is Window.EPOCH:
            begin_ms -= first_ms % epoch_ms
        window = [one for at, one in sent if begin_ms <= at < begin_ms + epoch_ms]
        assert len(window) <= budget
        # The last share is for new content only.
        others = [at for at, one in enumerate(window) if one is not Urgency.FIRST]
        if options.window is Window.EPOCH:
            assert all(at < options.approached_messages for at in others)


@CAREFUL
@given(options=limits, requests=requests)
@pytest.mark.rule("rc-rate-queued")
def test_whatever_waits_is_sent_at_the_time_of_renewal(
    options: RateLimitOptions, requests: list[tuple[int, Urgency, bool]]
) -> None:
    """One who sleeps until then wakes up neither too early nor in vain."""
    limit = RateLimit(options)
    now_ms = START_MS
    for passed_ms, urgency, _ in requests:
        now_ms += passed_ms
        before = limit.drop_reason(now_ms)
        if limit.take(urgency, now_ms):
            continue
        renewed_ms = limit.renewed_ms(now_ms)
        assert now_ms < renewed_ms <= now_ms + options.epoch_ms
        assert limit.drop_reason(int(renewed_ms) - 1) is before
        now_ms = int(renewed_ms)
        assert limit.drop_reason(now_ms) is not before
        assert limit.allows(Urgency.FIRST, now_ms)


@CAREFUL
@given(options=limits, requests=requests)
def test_the_window_that_slides_is_never_the_more_generous_one(
    options: RateLimitOptions, requests: list[tuple[int, Urgency, bool]]
) -> None:
    """What it allows, the epochs would have allowed for the same past."""
    sliding = RateLimit(replace(options, window=Window.SLIDING))
    epochs = RateLimit(replace(options, window=Window.EPOCH))
    now_ms = START_MS
    for passed_ms, urgency, _ in requests:
        now_ms += passed_ms
        if sliding.take(urgency, now_ms):
            assert epochs.take(urgency, now_ms)
        levels = [None, *DropReason]
        level = levels.index(sliding.drop_reason(now_ms))
        assert level >= levels.index(epochs.drop_reason(now_ms))
