"""Decides which channels and taps have a metric label of their own.

The number of labels is limited. When a name is first seen, it gets a label if the limit
allows, and keeps the label until the name is forgotten. All names without a label are
exported together as ``other``.

A name with a label never moves into ``other``. A name leaves ``other`` only if a job
starts with a larger limit or another channel table. The labels of forgotten names go
only to names that are first seen after a startup, never to names in ``other``. Without
these rules, exported counters could fall.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable

import msgspec

from sds_core.text import visible
from streaming.ledger.ledger import Ledger

MAX_LABEL_CHARACTERS = 200
"""Maximum length of a label. A scrape repeats each label in some hundred series."""

EXTRA_LABELS = 200
"""Maximum number of labels above the limit.

Only names for which the operator requests a label get such labels.
"""


class LabelLedger:
    """Gives labels to views of one kind, up to a limit, and stores the labels."""

    def __init__(self, ledger: Ledger, prefix: str, budget: int) -> None:
        self._ledger = ledger
        self._prefix = prefix
        self._budget = budget
        # Label, as a scrape shows it -> name. In a label, escapes replace hidden
        # characters, so two names may have the same label. Only one of them gets it,
        # because Prometheus refuses duplicate series.
        self._labels: dict[str, str] = {}
        # Forgotten names that still have a label. A new name may take over the label of
        # one of these names, the last name first, because its label is the oldest.
        self._vacant: dict[str, None] = {}
        stored = ledger.value("SELECT names FROM labels WHERE prefix = ?", prefix)
        if stored is not None:
            with ledger.decoding("labels"):
                names = msgspec.json.decode(stored, type=list[str])
            for name in names:
                self._labels.setdefault(visible(name), name)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names that have a label, in the order of labelling."""
        return tuple(self._labels.values())

    def admit(
        self,
        names: Iterable[str],
        wish: Callable[[str], bool | None] = lambda name: None,
    ) -> None:
        """Give a label to each new name that may have a label.

        A name longer than `MAX_LABEL_CHARACTERS` gets no label, because untrusted
        senders choose names. A name also gets no label if another name has this label.

        Args:
            names: Names of views; a name that has a label already keeps it.
            wish: Returns the operator's setting for a name. True: the name gets a label
                before other names, even above the limit. False: the name gets no label.
                None: the name gets a label if the limit allows.
        """
        before = dict(self._labels)
        names = list(names)
        for name in names:
            self._vacant.pop(name, None)
        room = {True: self._budget + EXTRA_LABELS, None: self._budget, False: 0}
        new = [
            name
            for name in names
            if len(name) <= MAX_LABEL_CHARACTERS and visible(name) not in self._labels
        ]
        wishes = {name: wish(name) for name in new}
        for name in sorted(new, key=lambda name: wishes[name] is not True):
            # If the operator requested labels or has lowered the limit, more names than
            # the limit may have labels. A new name then needs several free places.
            needed = len(self._labels) + 1 - room[wishes[name]]
            if needed <= len(self._vacant):
                for _ in range(needed):
                    del self._labels[visible(self._vacant.popitem()[0])]
            if len(self._labels) < room[wishes[name]]:
                self._labels.setdefault(visible(name), name)
        if self._labels != before:
            self._ledger.write(
                "INSERT OR REPLACE INTO labels VALUES (?, ?)",
                self._prefix,
                json.dumps(self.labels),
            )

    def vacate(self, known: Collection[str]) -> None:
        """Let new names take the labels of forgotten names.

        Forgotten names are all names that are not in `known`. If a forgotten name
        returns before another name takes its label, it keeps the label. Call this
        method at startup, after `admit` has processed the existing names.
        """
        self._vacant = dict.fromkeys(
            name for name in reversed(self.labels) if name not in known
        )
