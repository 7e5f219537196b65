"""Views that most tests of the observer begin with."""

from __future__ import annotations

import pytest

from tests.support.channel import Channel


@pytest.fixture
def channel() -> Channel:
    """A channel that has warmed up, at 60 s."""
    return Channel.after_warm_up()
