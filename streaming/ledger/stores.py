"""The stores of one job, which read and write the tables of its ledger.

Methods of all stores raise `streaming.damage.DamagedCheckpoint` if the file is damaged.
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
    """The stored data of the views of one kind, or of its groups if it has groups."""

    findings: Findings
    recent: RecentMinutes
    verdicts: VerdictStore
    tables: KindTables

    @classmethod
    def of(cls, ledger: Ledger, kind: AnyKind, with_history: bool) -> Store:
        """Return the store of a kind, with its data in this ledger."""
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
        with_history: Whether the job has a history. If so, minutes and verdicts are
            added to the outbox.
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
        """Return the stores of a ledger.

        `label_budget` is the label limit of each kind that sets no limit of its own.
        """
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
        """Number of outbox rows that not all destinations have; 0 without a history."""
        if not self.with_history:
            return 0
        return sum(one.findings.count_pending() for one in self.by_kind.values())
