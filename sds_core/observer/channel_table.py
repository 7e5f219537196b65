"""The channel table: names, SLOs, labels and muting that the operator sets.

The table changes no figure. Each entry of the table applies to the channels that the
entry's pattern matches. Each setting of a channel comes from the first matching entry
that contains it (docs/channels.md).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

Ratio = float
"""A ratio in [0, 1]."""


class Objectives(msgspec.Struct, frozen=True):
    """Ratios that a channel should reach; None if an entry does not set one.

    Attributes:
        delivery: Share of the ended deliveries that were not lost (docs/figures.md, 5).
        acknowledgement: Share of messages that were acknowledged by their deadline.
            Messages that others could not acknowledge do not count (docs/figures.md,
            4).
    """

    delivery: Ratio | None = None
    acknowledgement: Ratio | None = None


class ChannelEntry(msgspec.Struct, frozen=True):
    """Settings for the channels that a pattern matches; None leaves a setting unset.

    Attributes:
        match: A channel id, or a pattern with ``*``, ``?`` and ``[...]``.
        label: Whether the channel has its own metric label, regardless of the label
            limit. If None, the channel has a label only within the label limit.
        mute_until_ms: Wall time until which the channel is muted, Unix ms.
    """

    match: str
    name: str | None = None
    objectives: Objectives = Objectives()
    label: bool | None = None
    mute_until_ms: int | None = None


class ChannelSettings(msgspec.Struct, frozen=True):
    """Settings of one channel, see `ChannelEntry`; the name may be empty."""

    name: str = ""
    delivery_objective: Ratio = 0.99
    acknowledgement_objective: Ratio = 0.95
    label: bool | None = None
    mute_until_ms: int | None = None

    def is_muted(self, wall_ms: int) -> bool:
        """Whether the channel is muted at this wall time, Unix ms."""
        return self.mute_until_ms is not None and wall_ms < self.mute_until_ms


DEFAULT_SETTINGS = ChannelSettings()
"""Settings of a channel that no entry matches.

The acknowledgement SLO agrees with the verdict: if more than one message in twenty is
unacknowledged, the verdict is `failing` (docs/figures.md, 8).
"""


class ChannelTable:
    """Settings by channel, from entries in the order of the table.

    Args:
        entries: An entry whose `match` is a channel id has precedence over all
            patterns, including earlier ones.
    """

    def __init__(self, entries: Iterable[ChannelEntry] = ()) -> None:
        entries = list(entries)
        self._mute_until_ms = max((e.mute_until_ms or 0 for e in entries), default=0)
        self._exact: dict[str, list[ChannelEntry]] = {}
        self._patterns: list[ChannelEntry] = []
        for entry in entries:
            if set("*?[").isdisjoint(entry.match):
                self._exact.setdefault(entry.match, []).append(entry)
            else:
                self._patterns.append(entry)
        # Cached, because every scrape needs the settings of every channel.
        self._settings = lru_cache(maxsize=20_000)(self._merged)

    def of(self, channel: str) -> ChannelSettings:
        """Settings of a channel."""
        if not (self._exact or self._patterns):
            return DEFAULT_SETTINGS
        return self._settings(channel)

    def mutes_at(self, wall_ms: int) -> bool:
        """Whether any entry mutes a channel at this wall time, Unix ms."""
        return wall_ms < self._mute_until_ms

    def _merged(self, channel: str) -> ChannelSettings:
        entries = [
            *self._exact.get(channel, ()),
            *(e for e in self._patterns if fnmatch.fnmatchcase(channel, e.match)),
        ]
        merged: dict[str, object] = {}
        for entry in reversed(entries):
            merged |= _settings_of(entry)
        return msgspec.structs.replace(DEFAULT_SETTINGS, **merged)


def _settings_of(entry: ChannelEntry) -> Mapping[str, object]:
    values = {
        "name": entry.name,
        "delivery_objective": entry.objectives.delivery,
        "acknowledgement_objective": entry.objectives.acknowledgement,
        "label": entry.label,
        "mute_until_ms": entry.mute_until_ms,
    }
    return {name: value for name, value in values.items() if value is not None}
