"""The parts that groups have in the views of one kind."""

from __future__ import annotations

from typing import Any

from sds_core.observer.kinds import Grouping


class GroupParts:
    """The newest totals of each group in each view.

    Totals are absolute, so setting a part twice changes nothing.
    """

    def __init__(self, grouping: Grouping[Any, Any]) -> None:
        self._grouping = grouping
        # By the name of the group, then of the view.
        self._parts: dict[str, dict[str, Any]] = {}

    def set(self, group: str, view: str, part: Any) -> bool:
        """Set the part that a group has in a view; returns whether it has changed."""
        parts = self._parts.setdefault(group, {})
        if parts.get(view) == part:
            return False
        parts[view] = part
        return True

    def join(self, group: str) -> Any:
        """Return the totals of a group, of which a part was set."""
        return self._grouping.join(list(self._parts[group].values()))

    def take(self, view: str, totals: Any) -> dict[str, Any]:
        """Set all parts that lie in the totals of a view.

        Parts of other groups in the same view stay as they are.

        Returns:
            The parts that have changed, by group.
        """
        found = self._grouping.split(totals)
        return {name: one for name, one in found.items() if self.set(name, view, one)}
