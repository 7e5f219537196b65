"""Which channels, and which taps, have a metric label of their own.

A name gets one when it is first seen, while the budget lasts, and keeps it for the
life of the checkpoint; later names stay in ``other``. So none moves into ``other``, or
changes places with another after a restart, and none moves out of it unless a job is
started with a larger budget or other wishes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from sds_core.observer.kinds import Kinds
from streaming.files import write_atomically

LONGEST = 200
"""Characters of a label: a scrape repeats it in some hundred series."""

ALLOWED = 200
"""Labels beyond the budget for names that an operator wants to have one: a pattern may
match more of them than he thinks of."""


class LabelLedger:
    """The labels given so far, kept in a file beside the checkpoint.

    Args:
        path: The file.
        budget: How many names may have a label.
    """

    def __init__(self, path: Path, budget: int) -> None:
        self._path = path
        self._budget = budget
        self._labels: dict[str, None] = {}
        if path.exists():
            self._labels = dict.fromkeys(json.loads(path.read_text()))

    @property
    def labels(self) -> tuple[str, ...]:
        """Names with a label, in the order in which they got it."""
        return tuple(self._labels)

    def admit(
        self,
        names: Iterable[str],
        wish: Callable[[str], bool | None] = lambda name: None,
    ) -> None:
        """Give a label to each new name that may have one.

        None to one longer than `LONGEST`: strangers choose them.

        Args:
            names: All there are now, or some.
            wish: Whether a name is to have a label whatever the budget, and before
                the others; or none at all; or, if None, one while the budget lasts.
        """
        before = len(self._labels)
        room = {True: self._budget + ALLOWED, None: self._budget, False: 0}
        new = [n for n in names if n not in self._labels and len(n) <= LONGEST]
        wishes = {name: wish(name) for name in new}
        for name in sorted(new, key=lambda name: wishes[name] is not True):
            if len(self._labels) < room[wishes[name]]:
                self._labels[name] = None
        if len(self._labels) > before:
            write_atomically(self._path, json.dumps(list(self._labels)))


def open_ledgers(directory: Path, kinds: Kinds, budget: int) -> dict[str, LabelLedger]:
    """Open the ledgers of all kinds whose views may have labels, by prefix.

    Args:
        directory: Of the job's own files, beside the checkpoint.
        kinds: Registered kinds of view.
        budget: Number of labels for each kind that has no `Kind.label_budget`.
    """
    return {
        kind.prefix: LabelLedger(
            directory / kind.label_file,
            budget if kind.label_budget is None else kind.label_budget,
        )
        for kind in kinds
        if kind.label_file
    }
