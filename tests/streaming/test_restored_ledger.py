"""A restored backup of a ledger does not use the numbers of its lost rows again."""

from __future__ import annotations

import shutil
from pathlib import Path

from connectors.history.parquet import ParquetHistory
from connectors.history.query import find_incidents
from connectors.history.schema import INCIDENTS
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.incidents import IncidentQuery
from sds_core.observer.protocols import PROTOCOLS, ROOT_KIND, kinds_of
from streaming.checkpoint import check_identity, locked_checkpoint
from streaming.cli.output import wall_ms
from streaming.history import HistoryExporter, Outbox
from streaming.ledger.findings import Destination, number_rows_from
from streaming.ledger.importing import open_ledger
from streaming.ledger.stores import Store, Stores
from streaming.open_checkpoint import open_checkpoint
from streaming.settings import HistorySettings, JobSettings, SourceSettings
from tests.support.history.rows import incident_rows
from tests.support.history.rows import lost as lost_in_town
from tests.support.streaming.history import MONDAY_MS, lost, pending

KINDS = kinds_of(PROTOCOLS)
EARLY, LATE = 1_000, 2_000


def opened(checkpoint: Path, first_sequence: int) -> Store:
    """Open a checkpoint that has no batch, as a start does at a time."""
    identity = check_identity(checkpoint, "sds.frames", False, has_batches=False)
    _, ledger = open_ledger(checkpoint, identity, KINDS, None, first_sequence)
    number_rows_from(ledger, first_sequence)
    return Stores.of(ledger, KINDS, 200, False, True).by_kind[ROOT_KIND.prefix]


def numbers(store: Store) -> list[int]:
    """Return the numbers of the rows that wait."""
    waiting = pending(store.findings, Destination.PARQUET)
    return [one.sequence for one in waiting]


def test_rows_after_a_restore_have_greater_numbers_than_lost_rows(
    tmp_path: Path,
) -> None:
    """The history has the lost rows, and the row with the greatest number counts."""
    checkpoint, backup = tmp_path / "checkpoint", tmp_path / "backup"
    history = HistorySettings(tmp_path / "history", has_topics=False)
    store = opened(checkpoint, EARLY)
    shutil.copytree(checkpoint, backup)
    for number in range(9):
        store.findings.record_incidents({"town": [lost(str(number))]})
    store.findings.record_incidents({"town": [lost("late")]})
    outbox = Outbox(store.findings, None, store.tables)
    with HistoryExporter(history, [outbox], lambda: MONDAY_MS).running():
        pass
    shutil.rmtree(checkpoint)
    shutil.copytree(backup, checkpoint)
    store = opened(checkpoint, LATE)
    store.findings.record_incidents({"town": [lost("late", ended_ms=9)]})
    outbox = Outbox(store.findings, None, store.tables)
    with HistoryExporter(history, [outbox], lambda: MONDAY_MS).running():
        pass
    found = find_incidents(tmp_path / "history", IncidentQuery())
    ends = {one.incident.message_id: one.incident.ended_ms for one in found}
    assert ends["late"] == 9


def test_numbers_go_on_from_the_greater_of_clock_and_last_row(tmp_path: Path) -> None:
    """A clock that was set back does not repeat a number."""
    store = opened(tmp_path / "checkpoint", LATE)
    store.findings.record_incidents({"town": [lost("a")]})
    for first_sequence in (EARLY, LATE, LATE + 500):
        store = opened(tmp_path / "checkpoint", first_sequence)
        store.findings.record_incidents({"town": [lost(str(first_sequence))]})
    assert numbers(store) == [LATE, LATE + 1, LATE + 2, LATE + 500]


def test_rows_of_a_job_whose_clock_was_ahead_count_as_older(tmp_path: Path) -> None:
    """Although the clock has been set back meanwhile."""
    ahead = (wall_ms() + 3_600_000) * 1_000
    history = HistorySettings(tmp_path / "history", has_topics=False)
    rows = incident_rows(lost_in_town("m"), first=ahead)
    ParquetHistory(history.directory).write(INCIDENTS, rows)
    source = SourceSettings(KafkaSettings("127.0.0.1:1", "sds.frames"))
    settings = JobSettings(source, tmp_path / "checkpoint", history=history)
    with locked_checkpoint(settings.checkpoint):
        opened = open_checkpoint(settings, KINDS)
        number_rows_from(opened.stores.ledger, opened.first_sequence)
        store = opened.stores.by_kind[ROOT_KIND.prefix]
        store.findings.record_incidents({"town": [lost("m", ended_ms=9)]})
        assert numbers(store) == [ahead + 1]
        opened.stores.ledger.close()
