"""The tables of the ledger, opened for one job.

Methods of all tables raise `streaming.damage.DamagedCheckpoint` if the file is damaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from connectors.history.schema import KindTables, tables_of
from sds_core.observer.kinds import AnyKind, Kinds
from streaming.ledger.details import DetailStore
from streaming.ledger.findings import Findings
from streaming.ledger.group_minutes import GroupMinutes
from streaming.ledger.labels import LabelLedger
from streaming.ledger.ledger import Ledger
from streaming.ledger.recent import RecentMinutes
from streaming.ledger.verdicts import VerdictStore
from streaming.ledger.view_register import ViewRegister


class Store(NamedTuple):
    """The stored data of one kind of view, or of the kind's groups."""

    findings: Findings
    recent: RecentMinutes
    verdicts: VerdictStore
    tables: KindTables

    @classmethod
    def of(cls, ledger: Ledger, kind: AnyKind, with_history: bool) -> Store:
        """Return the stores of a kind in a ledger."""
        findings = Findings(ledger, kind)
        verdicts = VerdictStore(findings, with_history)
        return cls(findings, RecentMinutes(ledger, kind), verdicts, tables_of(kind))


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything that a job stores in addition to Spark's checkpoint.

    Attributes:
        by_kind: Stores of each kind that has incidents or minutes, by prefix.
        labels: Labels of each kind, by prefix.
        details: Definite acknowledgements; None if the checkpoint does not store them.
        with_history: Whether the job has a history, which gets minutes and verdicts.
    """

    ledger: Ledger
    by_kind: Mapping[str, Store]
    labels: Mapping[str, LabelLedger]
    register: ViewRegister
    groups: GroupMinutes
    details: DetailStore | None
    with_history: bool

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        kinds: Kinds,
        label_budget: int,
        report_detail: bool,
        with_history: bool,
    ) -> Stores:
        """Return the stores of a ledger; each kind may override the limit of labels."""
        return cls(
            ledger,
            {
                kind.prefix: Store.of(ledger, kind, with_history)
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
            with_history,
        )

    def count_pending(self) -> int:
        """Number of rows that at least one destination of the history lacks."""
        if not self.with_history:
            return 0
        return sum(one.findings.count_pending() for one in self.by_kind.values())
