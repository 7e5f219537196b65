"""Events that an MVDS view emits; each is an incident or a minute of one group."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.incidents import GroupIncident, Incident, lacking_names
from sds_core.observer.minutes import MINUTE_MS, GroupMinute
from sds_core.observer.mvds.groups import Groups
from sds_core.observer.mvds.totals import GroupTotals, as_of
from sds_core.observer.mvds.window import Window
from sds_core.observer.settings import ObserverSettings

_FEW_NAMES = 3
_ENCODER = msgspec.msgpack.Encoder()


class MvdsMinute(GroupMinute[GroupTotals], array_like=True, tag="MvdsMinute"):
    """A view's part of a group's figures, at the end of one minute."""


GroupEvent = GroupIncident | MvdsMinute


def explain(incident: Incident, settings: ObserverSettings) -> str:
    """Return the reason for an incident as one sentence, with the ACK deadline."""
    names = lacking_names(incident)
    senders = ", ".join(incident.named_by[:_FEW_NAMES])
    seconds = settings.ack_deadline_ms / 1000
    return (
        f"{senders} sent it, and within {seconds:g} seconds "
        f"{', '.join(names) or 'its receivers'} sent payloads, but no acknowledgement"
    )


def ended_minutes(
    groups: Groups, end_ms: int, emitted: dict[str, int]
) -> Iterator[MvdsMinute]:
    """Yield a minute for each group whose figures differ from its last emitted minute.

    The call updates `emitted`, which has the fingerprint of these figures by group.
    """
    for name in groups.names():
        part = as_of(groups.copy_of(name), end_ms)
        figures = _fingerprint(part)
        if figures != emitted.get(name):
            emitted[name] = figures
            yield MvdsMinute(end_ms - MINUTE_MS, part, name)


def _fingerprint(totals: GroupTotals) -> int:
    figures = msgspec.structs.replace(totals, clock_ms=0, observers=[], window=Window())
    return fingerprint(_ENCODER.encode(figures))
