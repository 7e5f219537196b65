"""Decides which channels and taps have a metric label of their own.

If the limit allows, a name gets a label when it is first seen, and keeps its label
until the name is forgotten. If the limit is reached, further names are exported as
``other``. A series never moves into ``other``. A series leaves ``other`` only if a job
starts with a larger limit or another channel table. At startup, freed labels go only to
names that were not in ``other`` yet. These rules keep counters from falling.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable

import msgspec

from streaming.ledger.ledger import Ledger

MAX_LABEL_CHARACTERS = 200
"""Maximum length of a label: a scrape repeats it in some hundred series."""

EXTRA_LABELS = 200
"""Number of labels beyond the limit, for names that the operator requests."""


class LabelLedger:
    """The labels given so far to the views of one kind; their number is limited."""

    def __init__(self, ledger: Ledger, prefix: str, budget: int) -> None:
        self._ledger = ledger
        self._prefix = prefix
        self._budget = budget
        self._labels: dict[str, None] = {}
        # Names whose labels new names may take. The last name, which has the oldest
        # label, is next.
        self._vacant: dict[str, None] = {}
        stored = ledger.value("SELECT names FROM labels WHERE prefix = ?", prefix)
        if stored is not None:
            with ledger.decoding("labels"):
                names = msgspec.json.decode(stored, type=list[str])
            self._labels = dict.fromkeys(names)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names that have a label, in the order of labelling."""
        return tuple(self._labels)

    def admit(
        self,
        names: Iterable[str],
        wish: Callable[[str], bool | None] = lambda name: None,
    ) -> None:
        """Give a label to each new name that may have a label.

        Untrusted senders choose names, so a long name gets no label.

        Args:
            names: Known and new names.
            wish: The operator's setting for a name. True: a label before other names,
                even above the limit. False: no label. None: a label if the limit
                allows.
        """
        before = dict(self._labels)
        names = list(names)
        for name in names:
            self._vacant.pop(name, None)
        room = {True: self._budget + EXTRA_LABELS, None: self._budget, False: 0}
        new = [
            name
            for name in names
            if name not in self._labels and len(name) <= MAX_LABEL_CHARACTERS
        ]
        wishes = {name: wish(name) for name in new}
        for name in sorted(new, key=lambda name: wishes[name] is not True):
            if self._vacant and room[wishes[name]] == len(self._labels):
                del self._labels[self._vacant.popitem()[0]]
            if len(self._labels) < room[wishes[name]]:
                self._labels[name] = None
        if self._labels != before:
            self._ledger.write(
                "INSERT OR REPLACE INTO labels VALUES (?, ?)",
                self._prefix,
                json.dumps(list(self._labels)),
            )

    def vacate(self, known: Collection[str]) -> None:
        """Let new names take the labels of forgotten names.

        If a forgotten name returns before its label is taken, the name gets the label
        back. Call this at startup, after the existing names were admitted.
        """
        self._vacant = dict.fromkeys(
            name for name in reversed(self._labels) if name not in known
        )
