"""Joins the minutes of views into minutes of groups.

A view emits its part of a group's minute only if the part has changed. Until the view
emits another part, its last part counts. If a view emits a part for a minute that is
older than the newest minute of the group, the part counts in the newest minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from sds_core.observer.kinds import AnyKind, Grouping, Kinds
from sds_core.observer.minutes import GroupMinute
from streaming.board import GroupParts
from streaming.ledger.ledger import Ledger

_STORE = """
INSERT INTO parts VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET minute_ms = excluded.minute_ms, part = excluded.part
"""

_LOAD = "SELECT name, view, minute_ms, part FROM parts WHERE prefix = ?"

_EMITTED = tuple[str, GroupMinute[Any]]


class GroupMinutes:
    """Joins the parts that views emit, and stores the last parts in the ledger."""

    def __init__(self, ledger: Ledger, kinds: Kinds) -> None:
        self._ledger = ledger
        self._parts: dict[str, GroupParts] = {}
        # Prefix of a kind -> name of a group -> start of its newest minute, Unix ms.
        self._newest_ms: dict[str, dict[str, int]] = {}
        for kind in kinds:
            if kind.grouping is not None:
                self._load(kind, kind.grouping)

    def join(
        self, kind: AnyKind, emitted: Mapping[str, Iterable[GroupMinute[Any]]]
    ) -> dict[str, list[GroupMinute[Any]]]:
        """Return the joined minutes, by group, in order of time.

        `emitted` has, for each view of one kind, the minutes that the view has emitted
        in a batch.
        """
        found = [(view, one) for view, minutes in emitted.items() for one in minutes]
        if not found:
            return {}
        found.sort(key=_minute_of)
        joined: dict[str, dict[int, GroupMinute[Any]]] = {}
        parts, newest_ms = self._parts[kind.prefix], self._newest_ms[kind.prefix]
        for minute_ms, some in groupby(found, key=_minute_of):
            emitted_now = list(some)
            for view, one in emitted_now:
                parts.set(one.group, view, one.totals)
            for name, one in {one.group: one for _, one in emitted_now}.items():
                at_ms = newest_ms[name] = max(minute_ms, newest_ms.get(name, 0))
                joined.setdefault(name, {})[at_ms] = msgspec.structs.replace(
                    one, minute_ms=at_ms, totals=parts.join(name)
                )
        self._store(kind, found)
        return {name: list(minutes.values()) for name, minutes in joined.items()}

    def _store(self, kind: AnyKind, emitted: Sequence[_EMITTED]) -> None:
        # If a view has emitted several parts of a group in a batch, only the last part
        # is stored.
        rows = {
            (one.group, view): (
                kind.prefix,
                one.group,
                view,
                one.minute_ms,
                msgspec.msgpack.encode(one.totals),
            )
            for view, one in emitted
        }
        self._ledger.write_all(_STORE, list(rows.values()))

    def _load(self, kind: AnyKind, grouping: Grouping[Any, Any]) -> None:
        parts = self._parts[kind.prefix] = GroupParts(grouping)
        newest_ms = self._newest_ms[kind.prefix] = {}
        with self._ledger.decoding("a part"):
            for name, view, minute_ms, packed in self._ledger.rows(_LOAD, kind.prefix):
                part = msgspec.msgpack.decode(packed, type=grouping.totals)
                parts.set(name, view, part)
                newest_ms[name] = max(minute_ms, newest_ms.get(name, 0))


def _minute_of(emitted: _EMITTED) -> int:
    return emitted[1].minute_ms
