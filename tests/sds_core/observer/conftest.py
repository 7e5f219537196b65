"""What most tests of the observer begin with: a channel, or a tap."""

from __future__ import annotations

import pytest

from tests.support.channel import Channel
from tests.support.observer.packed_tap import Tap


@pytest.fixture
def channel() -> Channel:
    """A channel that has warmed up, at 60 s."""
    return Channel.after_warm_up()


@pytest.fixture
def tap() -> Tap:
    """A tap of which nothing is known."""
    return Tap()
