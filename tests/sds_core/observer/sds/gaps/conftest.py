"""Channels with a message that a gap can follow.

They know `anchor`, whose lamport lies above L0: an unseen id behind it in a history is
a gap.
"""

from __future__ import annotations

import pytest

from tests.support.channel import START_LAMPORT, Channel


@pytest.fixture
def channel() -> Channel:
    """A channel that has warmed up and knows `anchor`, at 60 s."""
    channel = Channel.after_warm_up()
    channel.content("anchor", "anna", at=60_000, lamport=START_LAMPORT + 1)
    return channel
