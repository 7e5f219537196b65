"""Events that leave a view of MVDS: incidents and minutes, each of one group.

Their tags are persisted: they distinguish events in the outbox.
"""

from __future__ import annotations

from sds_core.observer.incidents import Incident
from sds_core.observer.minutes import Minute
from sds_core.observer.mvds.totals import GroupTotals


class GroupIncident(Incident, array_like=True, tag="GroupIncident"):
    """An incident of a message of MVDS.

    Attributes:
        group: Name of the message's group.
    """

    group: str = ""


class GroupMinute(Minute[GroupTotals], array_like=True, tag="GroupMinute"):
    """The part of a group's figures that one view has at the end of one minute.

    The figures of the group are those of all its parts of that minute, joined.

    Attributes:
        group: Name of the group.
    """

    group: str = ""


GroupEvent = GroupIncident | GroupMinute


def group_of(event: GroupEvent) -> str:
    """Name of the group of an event."""
    return event.group
