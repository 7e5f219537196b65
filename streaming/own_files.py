"""Opens the files of the job itself in a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sds_core.observer.kinds import Kinds
from streaming.checkpoint import CheckpointIdentity, own_files, record_start
from streaming.damage import ACKNOWLEDGEMENTS, INCIDENTS, MINUTES, VIEWS
from streaming.details import DetailStore
from streaming.findings import Findings
from streaming.labels import LabelLedger, open_ledgers
from streaming.recent import RecentMinutes
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
    """

    identity: CheckpointIdentity
    findings: Findings
    details: DetailStore | None
    ledgers: dict[str, LabelLedger]
    recent: RecentMinutes
    register: ViewRegister


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
    return OwnFiles(started, findings, details, ledgers, recent, register)
