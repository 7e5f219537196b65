"""Decodes the totals of a group when a view uses them, and encodes them again."""

from __future__ import annotations

import msgspec

from sds_core.native import native
from sds_core.observer.mvds.limits import MOST_GROUPS, MOST_TAPS, OTHER_GROUPS, LeftOut
from sds_core.observer.mvds.totals import (
    UNKNOWN_GROUP,
    GroupTotals,
    ShardTotals,
    unpack_group,
)
from sds_core.observer.mvds.window import Rule

_ENCODER = msgspec.msgpack.Encoder()


@native
class Groups:
    """The totals of each group, by name. They stay encoded until they are used.

    Args:
        totals: Totals of the view; `pack` updates them.
        rule: Settings of the verdict.
    """

    _packed: dict[str, msgspec.Raw]
    _rule: Rule
    _opened: dict[str, GroupTotals]
    # Number of groups, encoded or decoded.
    _count: int

    def __init__(self, totals: ShardTotals, rule: Rule) -> None:
        self._packed = totals.groups
        self._rule = rule
        self._opened = {}
        self._count = len(self._packed)

    def admit(self, name: str) -> str:
        """Return the group whose totals count the group `name`.

        This is `name` itself, or, if the group is new and the view already has
        `MOST_GROUPS` groups, `OTHER_GROUPS`.
        """
        if name in self._opened or name in self._packed:
            return name
        if self._count < MOST_GROUPS:
            return name
        self.leave_out(LeftOut.GROUP)
        return OTHER_GROUPS

    def __getitem__(self, name: str) -> GroupTotals:
        """Totals of a group, which the caller may change; a new group is added."""
        found = self._opened.get(name)
        if found is None:
            raw = self._packed.get(name)
            if raw is None:
                found = GroupTotals()
                self._count += 1
            else:
                found = unpack_group(raw)
            found.window.rule = self._rule
            self._opened[name] = found
        return found

    def saw(self, name: str, time_ms: int, clock_ms: int, observer: str) -> None:
        """Update a group's times and taps for a payload with the group's records."""
        totals = self[name]
        first_ms, last_ms = totals.first_event_ms, totals.last_event_ms
        totals.first_event_ms = time_ms if first_ms is None else min(first_ms, time_ms)
        totals.last_event_ms = time_ms if last_ms is None else max(last_ms, time_ms)
        if totals.window.began_ms is None:
            totals.window.began_ms = clock_ms
        self.saw_by(name, clock_ms, observer)

    def saw_by(self, name: str, clock_ms: int, observer: str) -> None:
        """Record that a tap saw traffic of a group."""
        if not observer:
            return
        totals = self[name]
        taps = totals.window.taps
        if observer not in taps and len(taps) >= MOST_TAPS:
            # Only taps of the retention window count. `pack` drops older ones, but the
            # result must not depend on where a batch ends.
            totals.window = totals.window.at(clock_ms)
            taps = totals.window.taps
            if len(taps) >= MOST_TAPS:
                return
        taps[observer] = clock_ms

    def leave_out(self, what: LeftOut, number: int = 1) -> None:
        """Count entries that a limit drops."""
        left_out = self[UNKNOWN_GROUP].left_out
        left_out[what] = left_out.get(what, 0) + number

    def names(self) -> list[str]:
        """Names of all groups, sorted."""
        return sorted(self._packed.keys() | self._opened.keys())

    def copy_of(self, name: str) -> GroupTotals:
        """Return an independent copy of a group's totals; the group must exist."""
        found = self._opened.get(name)
        packed = self._packed[name] if found is None else _packed(found)
        return unpack_group(packed)

    def pack(self, clock_ms: int) -> list[str]:
        """Encode the totals of the groups that were used since the last call.

        Events before the verdict's window are dropped; the window ends at `clock_ms`,
        Unix ms.

        Returns:
            The names of the encoded groups.
        """
        for name, totals in self._opened.items():
            totals.window = totals.window.at(clock_ms)
            self._packed[name] = _packed(totals)
        packed = list(self._opened)
        self._opened.clear()
        return packed


def _packed(totals: GroupTotals) -> msgspec.Raw:
    return msgspec.Raw(_ENCODER.encode(totals))
