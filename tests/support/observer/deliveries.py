"""Times and outcomes of deliveries, and one that is lost."""

from __future__ import annotations

from tests.support.channel import Channel

T0 = 60_000
DEADLINE = 300_000
HORIZON = 3_600_000


def outcomes(channel: Channel) -> dict[str, int]:
    """The outcomes that occurred."""
    names = ("first_pass", "recovered", "lost", "retracted")
    found = {name: getattr(channel.totals, f"deliveries_{name}") for name in names}
    return {name: count for name, count in found.items() if count}


def lose(channel: Channel, by: str = "bob", lamport: int = 1_001) -> int:
    """A participant lacks `m` so late that it is lost; returns the time."""
    at = T0 + DEADLINE + 1
    channel.sync(by, at=at, lamport=lamport, holds=())
    return at
