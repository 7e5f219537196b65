"""The tables of the ledger, opened for one job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from connectors.history.schema import KindTables, tables_of
from sds_core.observer.kinds import Kinds
from streaming.ledger.details import DetailStore
from streaming.ledger.findings import Findings
from streaming.ledger.group_minutes import GroupMinutes
from streaming.ledger.labels import LabelLedger
from streaming.ledger.ledger import Ledger
from streaming.ledger.recent import RecentMinutes
from streaming.ledger.view_register import ViewRegister


class Store(NamedTuple):
    """The stored data of one kind of view, or of the kind's groups.

    Attributes:
        findings: Recent incidents, and rows that the history does not have yet.
        recent: Figures of the last hour.
        tables: The kind's tables in the history.
    """

    findings: Findings
    recent: RecentMinutes
    tables: KindTables


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything that a job stores beside its checkpoint.

    Attributes:
        by_kind: Stores of each kind that has incidents or minutes, by prefix.
        labels: Metric labels given so far, by prefix.
        register: Names of views, and sums over forgotten views.
        groups: Per-minute parts that views contribute to their groups.
        details: Definite acknowledgements; None if the checkpoint stores none.
    """

    ledger: Ledger
    by_kind: Mapping[str, Store]
    labels: Mapping[str, LabelLedger]
    register: ViewRegister
    groups: GroupMinutes
    details: DetailStore | None

    @classmethod
    def of(
        cls, ledger: Ledger, kinds: Kinds, label_budget: int, report_detail: bool
    ) -> Stores:
        """Return the stores of a ledger; each kind may override the limit of labels."""
        return cls(
            ledger,
            {
                kind.prefix: Store(
                    Findings(ledger, kind), RecentMinutes(ledger, kind), tables_of(kind)
                )
                for kind in kinds
                if kind.has_findings
            },
            {
                kind.prefix: LabelLedger(
                    ledger,
                    kind.prefix,
                    label_budget if kind.label_budget is None else kind.label_budget,
                )
                for kind in kinds
                if kind.label_file
            },
            ViewRegister(ledger),
            GroupMinutes(ledger, kinds),
            DetailStore(ledger) if report_detail else None,
        )

    def count_pending(self) -> int:
        """Number of rows that some destination of the history does not have yet."""
        return sum(one.findings.count_pending() for one in self.by_kind.values())
