"""Opens the files of the job itself in a checkpoint."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from connectors.history.schema import figures_of, tables_of
from sds_core.observer.kinds import AnyKind, Kinds
from sds_core.observer.sds.kind import CHANNELS
from streaming.checkpoint import CheckpointIdentity, own_files, record_start
from streaming.damage import (
    ACKNOWLEDGEMENTS,
    GROUPS,
    INCIDENTS,
    MINUTES,
    VIEWS,
    file_of,
)
from streaming.details import DetailStore
from streaming.findings import Findings
from streaming.group_minutes import GroupMinutes
from streaming.labels import LabelLedger, open_ledgers
from streaming.recent import RecentMinutes
from streaming.stores import Store
from streaming.view_register import ViewRegister


class OwnFiles(NamedTuple):
    """The open files of one checkpoint.

    Attributes:
        identity: The checkpoint's identity, with this start counted.
        findings: Incidents, and the rows that wait for the history.
        details: Definite acknowledgements; None if the checkpoint stores none.
        ledgers: Metric labels given so far, by prefix of a kind.
        recent: Figures of the last hour.
        register: Names of views, and what forgotten ones had counted.
        others: What is stored of the kinds other than channels, by prefix.
        groups: Parts of the minutes of groups; None if no kind has groups.
    """

    identity: CheckpointIdentity
    findings: Findings
    details: DetailStore | None
    ledgers: dict[str, LabelLedger]
    recent: RecentMinutes
    register: ViewRegister
    others: dict[str, Store]
    groups: GroupMinutes | None


def open_own_files(
    checkpoint: Path,
    identity: CheckpointIdentity,
    kinds: Kinds,
    label_budget: int,
    first_sequence: int,
) -> OwnFiles:
    """Open all files, make those that are missing, and count a start.

    Args:
        checkpoint: Directory of the checkpoint.
        identity: See `streaming.checkpoint.check_identity`.
        kinds: Registered kinds of view.
        label_budget: See `open_ledgers`.
        first_sequence: See `Findings`.

    Raises:
        streaming.damage.DamagedCheckpoint: A file is damaged.
    """
    directory, known = own_files(checkpoint), identity.files
    files = [
        INCIDENTS,
        MINUTES,
        VIEWS,
        *(kind.label_file for kind in kinds if kind.label_file),
    ]
    others = {
        kind.prefix: _store(directory, kind, first_sequence, known, files)
        for kind in kinds
        if kind.has_findings and kind.prefix != CHANNELS.prefix
    }
    groups = None
    if any(kind.grouping is not None for kind in kinds):
        groups = GroupMinutes(directory / GROUPS, kinds, GROUPS in known)
        files.append(GROUPS)
    findings = Findings(directory / INCIDENTS, first_sequence, INCIDENTS in known)
    recent = RecentMinutes(directory / MINUTES, MINUTES in known)
    register = ViewRegister(directory / VIEWS, VIEWS in known)
    details = None
    if identity.report_detail:
        path = directory / ACKNOWLEDGEMENTS
        details = DetailStore(path, ACKNOWLEDGEMENTS in known)
        files.append(ACKNOWLEDGEMENTS)
    ledgers = open_ledgers(directory, kinds, label_budget)
    started = record_start(checkpoint, identity, files)
    return OwnFiles(
        started, findings, details, ledgers, recent, register, others, groups
    )


def _store(
    directory: Path,
    kind: AnyKind,
    first_sequence: int,
    known: Collection[str],
    files: list[str],
) -> Store:
    """Open the files of a kind other than channels, and add their names to `files`."""
    incidents = file_of(kind.prefix, INCIDENTS)
    minutes = file_of(kind.prefix, MINUTES)
    files += [incidents, minutes]
    path = directory / incidents
    findings = Findings(path, first_sequence, incidents in known, kind)
    recent = RecentMinutes(directory / minutes, minutes in known, figures_of(kind))
    return Store(findings, recent, tables_of(kind))
