"""The channel table: the operator's settings of channels.

The settings are name, SLOs, label and muting. The table does not change figures. Each
entry applies to the channels that its pattern matches. Each setting of a channel comes
from the first matching entry that contains this setting (docs/channels.md).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

Ratio = float
"""A ratio in [0, 1]."""


class Objectives(msgspec.Struct, frozen=True):
    """The SLOs that an entry sets; None for an SLO that the entry does not set.

    Attributes:
        delivery: Minimum share of deliveries that were not lost (docs/figures.md, 5).
        acknowledgement: Minimum share of messages that were acknowledged in time.
            Messages that no other participant could acknowledge are not counted
            (docs/figures.md, 4).
    """

    delivery: Ratio | None = None
    acknowledgement: Ratio | None = None


class ChannelEntry(msgspec.Struct, frozen=True):
    """Settings for the channels that a pattern matches; None leaves a setting unset.

    Attributes:
        match: A channel id, or a pattern with ``*``, ``?`` and ``[...]``.
        label: Whether the channel has its own metric label. If True, the channel has
            one even beyond the label limit (docs/channels.md). If False, it has none.
            If None, the label limit decides.
        mute_until_ms: Wall time until which the channel is muted, Unix ms.
    """

    match: str
    name: str | None = None
    objectives: Objectives = Objectives()
    label: bool | None = None
    mute_until_ms: int | None = None


class ChannelSettings(msgspec.Struct, frozen=True):
    """Settings of one channel, as in `ChannelEntry`; `name` is empty if unset."""

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

A channel misses the acknowledgement SLO if more than one of twenty messages is
unacknowledged. The verdict `failing` has the same limit (docs/figures.md, 8).
"""


class ChannelTable:
    """The settings of each channel, taken from the table's entries.

    Args:
        entries: The entries in the order of the table. An entry whose `match` is a
            channel id has precedence over all entries with patterns.
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
        # The function is cached, because every scrape needs the settings of every
        # channel.
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
