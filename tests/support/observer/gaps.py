"""Times and outcomes of gaps."""

from __future__ import annotations

from tests.support.channel import Channel

NAMED = 70_000
"""When the gap of most tests is first named."""

SETTLED = NAMED + 2_001
OVERDUE = NAMED + 300_000


def outcomes(channel: Channel) -> dict[str, int]:
    """The outcomes that occurred."""
    names = ("late", "repaired", "recovered_late", "lost", "tap_gap", "retracted")
    found = {name: getattr(channel.totals, f"gaps_{name}") for name in names}
    return {name: count for name, count in found.items() if count}
