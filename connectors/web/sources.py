"""Where the pages and the API get what they show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from connectors.history.schema import Row
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Sources:
    """What is asked, and how.

    Attributes:
        current: Gives the newest snapshot; called in threads of the server's own.
            Until the job has started it is one that is not primed.
        find_incidents: Gives incidents, found last first; called as `current`. Raises
            `NoHistory` and `DamagedHistory`.
        find_minutes: From a channel's id, a begin and end, Unix ms of event time, and
            names of fields, to the rows of `connectors.history.schema.CHANNEL_MINUTES`
            that began in [begin, end), in order, with at least these fields besides
            their minute; called and raises as `find_incidents`.
        runbooks: Directory of `<Alert>.md`.
    """

    current: Callable[[], Snapshot]
    find_incidents: Callable[[IncidentQuery], Sequence[ChannelIncident]]
    find_minutes: Callable[[str, int, int, Collection[str]], Sequence[Row]]
    runbooks: Traversable
