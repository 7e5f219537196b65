"""Which channels have a metric label of their own.

A channel gets one when it is first seen, while the budget lasts, and keeps it for the
life of the checkpoint; later channels stay in ``other``. So no exported counter ever
falls.
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
        budget: How many channels may have a label.
    """

    def __init__(self, path: Path, budget: int) -> None:
        self._path = path
        self._budget = budget
        self._labels: dict[str, None] = {}
        if path.exists():
            self._labels = dict.fromkeys(json.loads(path.read_text()))

    @property
    def labels(self) -> tuple[str, ...]:
        """Channels with a label, in the order in which they got it."""
        return tuple(self._labels)

    def admit(self, channels: Iterable[str]) -> None:
        """Give a label to each new channel while the budget lasts.

        None to an id longer than `LONGEST`: strangers choose them.
        """
        before = len(self._labels)
        for channel in channels:
            if len(self._labels) >= self._budget:
                break
            if len(channel) <= LONGEST:
                self._labels.setdefault(channel)
        if len(self._labels) > before:
            write_atomically(self._path, json.dumps(list(self._labels)))
