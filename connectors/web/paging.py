"""Divides the API's lists into pages.

A request states the entry after which its page begins, not a number of entries to skip.
So if other entries change between two requests, no entry is omitted or repeated.
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self, TypeVar

import msgspec

from connectors.web.naming import needs_key, short_key
from connectors.web.parameters import ViewQuery, Whole
from connectors.web.refusals import WrongParameter
from sds_core.observer.incidents import ChannelIncident, IncidentKind, IncidentPlace

PAGE_LIMIT = 1_000
"""Default and maximum number of entries of a page. An entry has about 1.4 kB, so the
pages of many concurrent requests fit into memory."""

_LONG_ID_CHARS = 100
"""Number of characters that remain if a long id is cut for an address."""

PlaceMs = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A time in a place, Unix ms: a 64-bit integer, as in the databases."""

Entry = TypeVar("Entry")
Place = TypeVar("Place")


@dataclass(frozen=True, kw_only=True)
class PageQuery:
    """Selects a page of a list.

    Attributes:
        limit: Maximum number of entries; values above 1,000 count as 1,000. If it is 0,
            the answer has no entries, and `next` is null.
        after: Value of `next` in the previous page.
    """

    limit: Whole = PAGE_LIMIT
    after: str | None = None

    @property
    def length(self) -> int:
        """Maximum number of entries of the page."""
        return min(self.limit, PAGE_LIMIT)

    def place(self, form: type[Place]) -> Place | None:
        """Return the place after which the page begins; None for the first page.

        Raises:
            WrongParameter: `after` is not a value of `next` from a page of this list.
        """
        if self.after is None:
            return None
        padding = "=" * (-len(self.after) % 4)
        try:
            packed = base64.b64decode(self.after + padding, b"-_", validate=True)
            return msgspec.json.decode(packed, type=form)
        except (binascii.Error, ValueError) as error:
            expected = "the value of the field 'next' in an answer of this monitor"
            raise WrongParameter("after", expected, self.after) from error

    def cut(
        self,
        entries: Sequence[Entry],
        place: Any,
        place_of: Callable[[Entry], Any],
    ) -> tuple[Sequence[Entry], bool]:
        """Return the entries of the page, and whether entries follow the page.

        `entries` has the whole list, sorted by place. `place_of` returns the place of
        an entry. The page begins after `place`.
        """
        begin = 0 if place is None else bisect_right(entries, place, key=place_of)
        end = begin + self.length
        return entries[begin:end], end < len(entries)


@dataclass(frozen=True, kw_only=True)
class ViewsQuery(ViewQuery, PageQuery):
    """Selects a page of views, or one of the views."""


def next_page(place: Sequence[object]) -> str:
    """Return a place, encoded for an address as the value of `next`."""
    packed = json.dumps(place, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def next_after(
    shown: Sequence[Entry], more: bool, place_of: Callable[[Entry], Sequence[object]]
) -> str | None:
    """Return the value of `next` after the entries `shown`; None on the last page."""
    return next_page(place_of(shown[-1])) if more and shown else None


class Reference(NamedTuple):
    """An id or, if the id is too long for an address, its key of 16 digits."""

    text: str
    is_key: bool

    @classmethod
    def to(cls, name: str) -> Reference:
        """Return the reference to an id."""
        return cls(short_key(name), needs_key(name))

    def find(self, names: Iterable[str]) -> str:
        """Return the id. If only its key is known, search `names` for the id.

        Raises:
            WrongParameter: `names` no longer has an id with this key.
        """
        if not self.is_key:
            return self.text
        for name in names:
            if needs_key(name) and short_key(name) == self.text:
                return name
        expected = "the value of the field 'next' in an answer of this monitor"
        raise WrongParameter("after", expected, self.text)


class ListedIncident(NamedTuple):
    """The place of an incident in the list, in a form for addresses.

    Attributes:
        message_id: Message id. A long id is cut, so the next page may omit incidents
            whose message ids begin with the same characters.
        begin: First characters of a long channel id, which replace the id if the
            channel no longer exists; empty if the channel id is not long.
    """

    found_ms: PlaceMs
    channel: Reference
    kind: IncidentKind
    message_id: str
    begin: str = ""

    @classmethod
    def of(cls, found: ChannelIncident) -> Self:
        """Return the place of an incident."""
        incident = found.incident
        message_id = incident.message_id
        if needs_key(message_id):
            message_id = _begin(message_id)
        channel = Reference.to(found.channel)
        begin = _begin(found.channel) if channel.is_key else ""
        return cls(incident.found_ms, channel, incident.kind, message_id, begin)

    def find(self, channels: Iterable[str]) -> IncidentPlace:
        """Return the place as `IncidentQuery` needs it; `channels` has all channel ids.

        Raises:
            WrongParameter: `channel` is a key that no channel has, and `begin` is
                empty.
        """
        try:
            channel = self.channel.find(channels)
        except WrongParameter:
            if not self.begin:
                raise
            channel = self.begin
        return IncidentPlace(self.found_ms, channel, self.kind, self.message_id)


def _begin(long_id: str) -> str:
    # Return a text that sorts after all ids that begin with the same characters.
    return long_id[:_LONG_ID_CHARS] + chr(sys.maxunicode)
