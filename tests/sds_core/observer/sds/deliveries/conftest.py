"""Channels in which bob should have a message of alice.

In most tests bob speaks at 59 s, and alice sends `m` at 60 s with lamport 1,000: what
bob sends from then on shows whether he has it.
"""

from __future__ import annotations

import pytest

from tests.support.channel import Channel
from tests.support.observer.deliveries import T0


@pytest.fixture
def channel() -> Channel:
    """A channel after its warm-up in which bob spoke, without a filter, at 59 s."""
    channel = Channel.after_warm_up()
    channel.sync("bob", at=T0 - 1_000, lamport=500)
    return channel


@pytest.fixture
def sent(channel: Channel) -> Channel:
    """The same after alice has sent `m`."""
    channel.content("m", "alice", at=T0)
    return channel
