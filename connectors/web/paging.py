"""Pages of the API's lists: at most so many entries, and where the next page begins.

A page begins after an entry, not at a number of entries: so entries that come, go or
change their place between two requests neither hide nor repeat others.
"""

from __future__ import annotations

import base64
import binascii
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from connectors.web.naming import is_long, short_key
from connectors.web.parameters import number
from connectors.web.refusals import WrongParameter

PAGE_LIMIT = 1_000
"""Entries of a page by default, and at most: with 1.4 kB each, what many clients
request at once fits into memory."""

Entry = TypeVar("Entry")
Place = TypeVar("Place")


class PageRequest(NamedTuple):
    """Which page of a list to return.

    Attributes:
        limit: Greatest number of entries.
        after: The `next` of the page before; None for the first page.
    """

    limit: int
    after: str | None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> PageRequest:
        """Return the page that the parameters `limit` and `after` select.

        Raises:
            WrongParameter: `limit` is not a number.
        """
        limit = number(given, "limit")
        return cls(
            PAGE_LIMIT if limit is None else min(limit, PAGE_LIMIT), given.get("after")
        )

    def place(self, form: type[Place]) -> Place | None:
        """Return the place after which the page begins; None for the first page.

        Args:
            form: Type of the place, which `next_page` got.

        Raises:
            WrongParameter: `after` was not returned by this list.
        """
        if self.after is None:
            return None
        padding = "=" * (-len(self.after) % 4)
        try:
            packed = base64.b64decode(self.after + padding, b"-_", validate=True)
            return msgspec.json.decode(packed, type=form)
        except (binascii.Error, ValueError) as error:
            expected = "the next of another answer"
            raise WrongParameter("after", expected, self.after) from error

    def cut(
        self,
        entries: Sequence[Entry],
        place: Any,
        place_of: Callable[[Entry], Any],
    ) -> tuple[Sequence[Entry], bool]:
        """Return the entries of the page, and whether there are more.

        Args:
            entries: All entries, in the order of their places.
            place: See `place`.
            place_of: Returns the place of an entry.
        """
        begin = 0 if place is None else bisect_right(entries, place, key=place_of)
        end = begin + self.limit
        return entries[begin:end], end < len(entries)


def next_page(place: Sequence[object]) -> str:
    """Return the value of `next`: text for an address, of values that JSON has."""
    packed = json.dumps(place, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def next_after(
    shown: Sequence[Entry], more: bool, place_of: Callable[[Entry], Sequence[object]]
) -> str | None:
    """Return the value of `next` after the entries of a page; None without more."""
    return next_page(place_of(shown[-1])) if more and shown else None


class Reference(NamedTuple):
    """An id, or a key of 16 digits in its place if it is too long for an address.

    Attributes:
        text: The id or the key.
        is_key: Whether it is the key.
    """

    text: str
    is_key: bool

    @classmethod
    def to(cls, name: str) -> Reference:
        """Return the reference to an id."""
        return cls(short_key(name), is_long(name))

    def find(self, names: Iterable[str]) -> str:
        """Return the id.

        Args:
            names: All ids, to find the one with a key.

        Raises:
            WrongParameter: No id has the key any more.
        """
        if not self.is_key:
            return self.text
        for name in names:
            if is_long(name) and short_key(name) == self.text:
                return name
        expected = "the next of an answer of this monitor"
        raise WrongParameter("after", expected, self.text)
