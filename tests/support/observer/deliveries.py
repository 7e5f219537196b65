"""Times and outcomes of deliveries, and one that is lost."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.channel import Channel

T0 = 60_000
DEADLINE = 300_000
HORIZON = 3_600_000
LACKED = T0 + 10_000
"""When the first frame shows that a participant lacks a message."""


def outcomes(channel: Channel) -> dict[str, int]:
    """The outcomes that occurred."""
    names = ("first_pass", "recovered", "lost", "retracted")
    found = {name: getattr(channel.totals, f"deliveries_{name}") for name in names}
    return {name: count for name, count in found.items() if count}


def lose(
    channel: Channel,
    by: str = "bob",
    lamport: int = 1_001,
    holds: Sequence[str] = (),
    at: int = LACKED,
) -> int:
    """A participant lacks `m` for so long that it is lost; returns the time.

    It is never silent for long, so it was there.

    Args:
        channel: The channel.
        by: The participant.
        lamport: Of the first of its three frames.
        holds: What its filter holds.
        at: When the first frame shows that it lacks `m`.
    """
    lost = at + DEADLINE + 1
    for number, when in enumerate((at, at + DEADLINE // 2, lost)):
        channel.sync(by, at=when, lamport=lamport + number, holds=holds)
    return lost
