"""Events that leave a view of MVDS: incidents and minutes, each of one group."""

from __future__ import annotations

from itertools import islice

from sds_core.observer.incidents import GroupIncident, Incident
from sds_core.observer.minutes import GroupMinute
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.text import counted

_FEW_NAMES = 3


class MvdsMinute(GroupMinute[GroupTotals], array_like=True, tag="MvdsMinute"):
    """The part of a group's figures that one view has at the end of one minute.

    The tag is persisted: it distinguishes minutes from incidents in the outbox.
    """


GroupEvent = GroupIncident | MvdsMinute


def group_of(event: GroupEvent) -> str:
    """Name of the group of an event."""
    return event.group


def explain(incident: Incident, settings: ObserverSettings) -> str:
    """One sentence that gives the reason for an incident, with the rule's limit."""
    names = [*islice(incident.lacking, _FEW_NAMES)]
    others = len(incident.lacking) - len(names) + incident.lacking_others
    if others:
        names.append(counted(others, "other"))
    senders = ", ".join(incident.named_by[:_FEW_NAMES])
    seconds = settings.ack_deadline_ms / 1000
    return (
        f"{senders} sent it, and within {seconds:g} seconds "
        f"{', '.join(names) or 'its receivers'} sent payloads, but no acknowledgement"
    )
