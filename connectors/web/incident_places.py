"""The place of an incident in a list that comes in pages."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated, NamedTuple, Self

import msgspec

from connectors.web.naming import is_long
from connectors.web.paging import Reference
from connectors.web.refusals import WrongParameter
from sds_core.observer.incidents import ChannelIncident, IncidentKind, IncidentPlace

_LONG_ID_CHARS = 100
"""Characters of a long message id in an address."""

_INT64 = msgspec.Meta(ge=-(2**63), le=2**63 - 1)
"""What databases hold as a time."""


class ListedIncident(NamedTuple):
    """The place of an incident in the list, in a form for addresses.

    Attributes:
        found_ms, kind: See `IncidentPlace`.
        channel: The channel.
        message_id: Id of the message. A long id is not sent on as a whole: others that
            begin alike may then be left out.
        begin: Begin of a long channel id, in case that the channel ends meanwhile.
    """

    found_ms: Annotated[int, _INT64]
    channel: Reference
    kind: IncidentKind
    message_id: str
    begin: str = ""

    @classmethod
    def of(cls, found: ChannelIncident) -> Self:
        """Return the place of an incident."""
        incident = found.incident
        message_id = incident.message_id
        if is_long(message_id):
            message_id = _begin(message_id)
        channel = Reference.to(found.channel)
        begin = _begin(found.channel) if channel.is_key else ""
        return cls(incident.found_ms, channel, incident.kind, message_id, begin)

    def find(self, channels: Iterable[str]) -> IncidentPlace:
        """Return the place for a query.

        Args:
            channels: All channel ids.

        Raises:
            WrongParameter: The channel does not exist, and its begin is not given.
        """
        try:
            channel = self.channel.find(channels)
        except WrongParameter:
            if not self.begin:
                raise
            channel = self.begin
        return IncidentPlace(self.found_ms, channel, self.kind, self.message_id)


def _begin(long_id: str) -> str:
    """Return what comes after all ids with the same begin."""
    return long_id[:_LONG_ID_CHARS] + chr(sys.maxunicode)
