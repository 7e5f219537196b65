"""Traffic that changes the verdict on a channel."""

from __future__ import annotations

from tests.support.channel import START_LAMPORT, Channel
from tests.support.frames import bloom

WINDOW_MS = 600_000


def missed_messages(channel: Channel, messages: int, missed: int) -> int:
    """Messages at 60 s, some of them never acknowledged; returns their deadline."""
    for number in range(messages):
        channel.content(f"m{number}", "alice", at=60_000, lamport=1_000 + number)
    named = [f"m{number}" for number in range(missed, messages)]
    channel.sync("bob", at=61_000, lamport=9_000, history=named)
    return 180_000


def lose(channel: Channel) -> int:
    """Message `x` of sue is lost; returns its deadline."""
    channel.content("anchor", "anna", at=60_000, lamport=START_LAMPORT + 1)
    channel.sync("sue", at=60_000, history=["anchor", ("x", "sue")])
    return 360_000


def miss(channel: Channel) -> int:
    """Bob lacks `m` of alice; returns the first time at which it would be lost.

    Zoe has it.
    """
    channel.sync("bob", at=59_000, lamport=500)
    channel.content("m", "alice", at=60_000)
    channel.sync("zoe", at=61_000, lamport=1_001, history=["m"])
    channel.sync("bob", at=70_000, lamport=1_001, holds=())
    channel.sync("bob", at=220_000, lamport=1_001, holds=())
    return 370_001


def saturated(bits_set: int) -> bytes:
    """A filter whose rate is over 1 %: from 94,644 set bits on."""
    return bloom(bits_set=bits_set)
