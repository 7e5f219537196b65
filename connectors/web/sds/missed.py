"""Counts the messages that participants had but a tap missed (docs/figures.md, 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectors.web import words
from connectors.web.last_hour import LastHour
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.snapshot import Snapshot, Views


@dataclass(slots=True)
class Missed:
    """Counts of the messages that one tap missed in the last hour, in its channels.

    Attributes:
        missed: Number of messages that participants had, but no tap of the channel
            mirrored.
        messages: `missed`, plus the number of messages that any tap of the channel
            mirrored.
        is_least: Whether `missed` is only a minimum, because another tap also mirrors
            one of the channels. Messages that only the other tap mirrored do not count.
    """

    missed: int = 0
    messages: int = 0
    is_least: bool = False

    def is_much(self, settings: ObserverSettings) -> bool:
        """Whether the share of missed messages exceeds `undelivered_percent`."""
        return self.missed * 100 > self.messages * settings.undelivered_percent

    def __str__(self) -> str:
        """Return the number and share of missed messages; a dash without messages."""
        if not self.messages:
            return words.NOTHING
        bound = "at least " if self.is_least and self.missed else ""
        share = words.share(self.missed, self.messages, decimals=1)
        return (
            f"{bound}{words.number(self.missed)} of {words.number(self.messages)} "
            f"({share})"
        )


def missed_by_tap(
    snapshot: Snapshot, views: Views[Any], hour: LastHour
) -> Mapping[str, Missed]:
    """Return for each tap how many messages it missed in the last hour.

    A channel counts for a tap only if the tap appeared at most `warm_up_ms` after the
    hour or the channel began, whichever is later.
    """
    found = {observer: Missed() for observer in snapshot.taps}
    for channel, totals in views.totals.items():
        lately = hour.lately(channel, totals)
        if lately.figures is None:
            continue
        # During a new channel's warm-up, no message counts as missed. So the channel
        # also counts for a tap that appeared during the warm-up.
        begin_ms = (lately.since_ms or 0) + snapshot.observer.warm_up_ms
        missed = lately.figures.gaps_tap_gap
        messages = lately.figures.messages + missed
        for observer in set(totals.observers):
            tap = snapshot.taps.get(observer)
            if tap is None or tap.first_seen_ms > begin_ms:
                continue
            one = found[observer]
            one.missed += missed
            one.messages += messages
            one.is_least |= len(totals.observers) > 1
    return found
