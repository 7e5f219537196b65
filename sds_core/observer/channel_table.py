"""What an operator says of channels: names, objectives, labels, silence.

Nothing here changes a figure. A table is a list of entries, each for the channels that
its pattern matches; of several that match a channel the first that says something about
a setting counts.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

Ratio = float
"""A share, from 0 to 1."""


class Objectives(msgspec.Struct, frozen=True):
    """Shares that a channel is to reach; None where an entry says nothing.

    Attributes:
        delivery: Of the deliveries that ended, those that were not lost (observer
            model, section 5).
        acknowledgement: Of the messages that others could have acknowledged, those
            that were acknowledged by their deadline (section 4).
    """

    delivery: Ratio | None = None
    acknowledgement: Ratio | None = None


class ChannelEntry(msgspec.Struct, frozen=True):
    """What is said of the channels that a pattern matches.

    Attributes:
        match: A channel id, or a pattern with ``*``, ``?`` and ``[...]``.
        name: What people call the channel; None to say nothing.
        objectives: Its objectives.
        label: Whether it has a metric label of its own, whatever the budget; None to
            leave that to the budget.
        mute_until_ms: Wall time up to which nobody is to be told of its troubles,
            Unix ms; None for not at all.
    """

    match: str
    name: str | None = None
    objectives: Objectives = Objectives()
    label: bool | None = None
    mute_until_ms: int | None = None


class ChannelSettings(msgspec.Struct, frozen=True):
    """What holds for one channel.

    Attributes:
        name: What people call it; empty if nobody has named it.
        delivery_objective, acknowledgement_objective: Shares it is to reach.
        label: As `ChannelEntry.label`.
        mute_until_ms: As `ChannelEntry.mute_until_ms`.
    """

    name: str = ""
    delivery_objective: Ratio = 0.99
    acknowledgement_objective: Ratio = 0.95
    label: bool | None = None
    mute_until_ms: int | None = None

    def is_muted(self, wall_ms: int) -> bool:
        """Whether nobody is to be told of its troubles at this wall time, Unix ms."""
        return self.mute_until_ms is not None and wall_ms < self.mute_until_ms


DEFAULT_SETTINGS = ChannelSettings()
"""Of a channel of which nothing is said.

Up to one message in twenty unacknowledged is what the verdict still calls degraded.
"""


class ChannelTable:
    """Entries in the order in which they were written.

    Args:
        entries: An entry whose `match` is the id itself comes before patterns,
            wherever it stands.
    """

    def __init__(self, entries: Iterable[ChannelEntry] = ()) -> None:
        self._exact: dict[str, list[ChannelEntry]] = {}
        self._patterns: list[ChannelEntry] = []
        for entry in entries:
            if set("*?[").isdisjoint(entry.match):
                self._exact.setdefault(entry.match, []).append(entry)
            else:
                self._patterns.append(entry)
        # Asked for every channel at every scrape.
        self._settings = lru_cache(maxsize=20_000)(self._merged)

    def of(self, channel: str) -> ChannelSettings:
        """What holds for a channel."""
        if not (self._exact or self._patterns):
            return DEFAULT_SETTINGS
        return self._settings(channel)

    def _merged(self, channel: str) -> ChannelSettings:
        entries = [
            *self._exact.get(channel, ()),
            *(e for e in self._patterns if fnmatch.fnmatchcase(channel, e.match)),
        ]
        said: dict[str, object] = {}
        for entry in reversed(entries):
            said |= _said(entry)
        return msgspec.structs.replace(DEFAULT_SETTINGS, **said)


def _said(entry: ChannelEntry) -> Mapping[str, object]:
    """The settings that an entry says something about."""
    values = {
        "name": entry.name,
        "delivery_objective": entry.objectives.delivery,
        "acknowledgement_objective": entry.objectives.acknowledgement,
        "label": entry.label,
        "mute_until_ms": entry.mute_until_ms,
    }
    return {name: value for name, value in values.items() if value is not None}
