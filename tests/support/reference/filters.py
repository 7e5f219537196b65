"""The filters of participants, the newest of each."""

from __future__ import annotations

import functools

from sds_core.wire import Dialect
from tests.support.reference.broadcasts import Broadcasts
from tests.support.reference.seen import Seen


def shape(one: Seen) -> tuple[Dialect, int, int]:
    """Dialect, bits in use and hashes of a frame's filter, which can be read."""
    filter_ = one.filter()
    assert filter_ is not None
    return one.dialect, filter_.m_bits, filter_.k


def rate(one: Seen) -> float:
    """False-positive rate of a frame's filter, which can be read."""
    _, m_bits, k = shape(one)
    return (one.bits_set() / m_bits) ** k


class Filters(Broadcasts):
    """Adds the filters that each participant sent."""

    @functools.cache  # noqa: B019
    def with_filter(self, sender: str) -> list[Seen]:
        """First copies of a sender that have a lamport and a readable filter."""
        return [
            one
            for one in self.first_copies
            if one.sender == sender
            and not one.is_ephemeral
            and one.filter() is not None
        ]

    @functools.cache  # noqa: B019
    def newest(self, sender: str, dialect: Dialect | None = None) -> list[Seen]:
        """The frames whose filter was the sender's newest when they came."""
        found: list[Seen] = []
        for one in self.with_filter(sender):
            is_meant = dialect in (None, one.dialect)
            if is_meant and (not found or one.lamport > found[-1].lamport):
                found.append(one)
        return found
