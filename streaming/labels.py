"""Which channels, and which taps, have a metric label of their own.

A name gets one when it is first seen, while the budget lasts, and keeps it for the
life of the checkpoint; later names stay in ``other``. So none moves into or out of
``other``, or changes places with another after a restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from streaming.files import write_atomically

LONGEST = 200
"""Characters of a label: a scrape repeats it in some hundred series."""


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

    def admit(self, names: Iterable[str]) -> None:
        """Give a label to each new name while the budget lasts.

        None to one longer than `LONGEST`: strangers choose them.
        """
        before = len(self._labels)
        for name in names:
            if len(self._labels) >= self._budget:
                break
            if len(name) <= LONGEST:
                self._labels.setdefault(name)
        if len(self._labels) > before:
            write_atomically(self._path, json.dumps(list(self._labels)))
