"""The bloom filter of a participant's message ids; a full filter drops old ids."""

from __future__ import annotations

from sds_core.message_channel.profile import Profile
from sds_core.wire import BloomFilter

_MOST_PENDING = 1_024
"""Maximum number of new ids that are collected before one call adds them all."""


class RollingBloom:
    """A bloom filter that drops old ids when it has more ids than its limit.

    The filter is then rebuilt from the newest ids (SDS, "Participant state"). New ids
    are collected, and added in one call when the filter is needed. The filter is seldom
    needed, because mainly sent frames need it, and a participant receives far more
    frames than it sends.
    """

    __slots__ = ("_filter", "_ids", "_in_filter", "_profile", "_wire")

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._filter: BloomFilter | None = None
        # Ids, oldest first. The ids from index `_in_filter` on are not in the filter
        # yet.
        self._ids: list[str] = []
        self._in_filter = 0
        self._wire: bytes | None = None

    def add(self, message_id: str) -> None:
        """Add an id."""
        self._wire = None
        ids = self._ids
        ids.append(message_id)
        rollover = self._profile.bloom_rollover_ids
        if rollover is not None and len(ids) > rollover:
            del ids[: -self._profile.bloom_kept_ids]
            self._in_filter = 0
            self._filter = BloomFilter(
                self._profile.dialect,
                self._profile.bloom_rolled or self._profile.bloom,
            )
        elif len(ids) - self._in_filter > _MOST_PENDING:
            self._put_in()

    def contains(self, message_id: str) -> bool:
        """Return whether the filter seems to hold an id; only False is certain."""
        return self._put_in().contains(message_id)

    def to_wire(self) -> bytes:
        """Return the filter in the wire form of its dialect."""
        if self._wire is None:
            self._wire = self._put_in().to_wire()
        return self._wire

    def state(self) -> tuple[bytes, list[str]]:
        """Return the filter's wire form, and the ids for the next rebuild.

        If the filter is never rebuilt, the list is empty.
        """
        return self.to_wire(), list(self._ids)

    def restore(self, wire: bytes, ids: list[str]) -> None:
        """Restore the filter and the ids that `state` returned.

        Raises:
            BloomError: `wire` is not the wire form of a filter of this profile.
        """
        self._filter = BloomFilter.from_wire(
            self._profile.dialect, wire, self._profile.bloom
        )
        self._ids = ids
        self._in_filter = len(ids)
        self._wire = wire

    def _put_in(self) -> BloomFilter:
        if self._filter is None:
            self._filter = BloomFilter(self._profile.dialect, self._profile.bloom)
        self._filter.add_all(self._ids[self._in_filter :])
        if self._profile.bloom_rollover_ids is None:
            self._ids.clear()
        self._in_filter = len(self._ids)
        return self._filter
