"""Checks what Spark does not check in a checkpoint, and opens it for a job."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.metadata import version
from typing import NamedTuple

from connectors.history.query import greatest_told
from connectors.history.schema import tables_of
from sds_core.observer.blob import check_version
from sds_core.observer.kinds import Kinds
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from streaming.batch_log import BatchLog, complete, position_of, read_batch_log
from streaming.checkpoint import (
    CheckpointIdentity,
    check_identity,
    locked_checkpoint,
    own_files,
)
from streaming.damage import LEDGER
from streaming.history import locked_history
from streaming.ledger.importing import open_ledger
from streaming.ledger.ledger import check_ledger
from streaming.ledger.stores import Stores
from streaming.settings import HistorySettings, JobSettings, SourceSettings
from streaming.state_files import check_state
from streaming.unfinished import next_unfinished, plan_again


class OpenCheckpoint(NamedTuple):
    """An opened checkpoint; `identity.starts` includes the present start.

    Attributes:
        source: Settings of the reader, with the checkpoint's file of requests. If a
            batch has failed, the settings also contain its smaller parts.
        position_of: For the number of a planned batch, returns a text with all values
            that determine the batch's rows.
        first_sequence: See `findings.number_rows_from`.
    """

    log: BatchLog
    identity: CheckpointIdentity
    stores: Stores
    source: SourceSettings
    position_of: Callable[[int], str]
    first_sequence: int


def open_checkpoint(settings: JobSettings, kinds: Kinds) -> OpenCheckpoint:
    """Check and open a checkpoint, and prepare it for Spark."""
    checkpoint = settings.checkpoint
    log = read_batch_log(checkpoint)
    check_state(checkpoint, log)
    identity = _identity_of(settings, log, kinds)
    identity.unfinished = next_unfinished(log, identity.unfinished)
    greatest = _greatest_told(settings.history, kinds)
    first_sequence = max(time.time_ns() // 1_000, greatest + 1)
    identity, ledger = open_ledger(
        checkpoint, identity, kinds, log.committed, first_sequence
    )
    plan_again(checkpoint, log, identity.unfinished)
    complete(checkpoint, log)

    with_history = settings.history is not None
    # A repeated batch has the same rows only if the version of the package and these
    # options are the same. The version is read at startup, because the package may be
    # replaced while the job runs.
    rules = f"{version('sds-monitor')} {settings.forget_ms, with_history}"

    def position(batch: int) -> str:
        return f"{rules} {position_of(checkpoint, batch)}"

    batch = 0 if log.committed is None else log.committed + 1
    is_planned = (checkpoint / "offsets" / str(batch)).exists()
    ledger.begin(log.committed, position(batch) if is_planned else None)
    stores = Stores.of(
        ledger, kinds, settings.label_budget, identity.report_detail, with_history
    )
    stores.register.begin(0 if log.position is None else log.position.requests)
    source = replace(settings.source, requests=str(own_files(checkpoint) / LEDGER))
    if identity.unfinished is not None:
        limits = replace(source.limits, parts=identity.unfinished.parts)
        source = replace(source, limits=limits)
    return OpenCheckpoint(log, identity, stores, source, position, first_sequence)


def check_start(settings: JobSettings, thorough: bool = False) -> None:
    """Check, without Spark, that a job can use its checkpoint and its history.

    A thorough check also reads the state and the ledger of an existing checkpoint.

    Raises:
        CheckpointMismatch: The checkpoint was begun with other settings.
        DamagedCheckpoint: The checkpoint is damaged.
        DirectoryInUse: Another job uses the checkpoint or the history.
        DirectoryUnwritable: The checkpoint or the history cannot be written to.
        OSError: The disk is full, or fails.
        sds_core.observer.blob.UnknownBlobVersion: A newer release wrote the state.
    """
    checkpoint = settings.checkpoint
    with locked_checkpoint(checkpoint), ExitStack() as stack:
        log = read_batch_log(checkpoint)
        identity = _identity_of(settings, log, kinds_of(PROTOCOLS))
        if settings.history is not None:
            stack.enter_context(locked_history(settings.history.directory))
        if thorough:
            check_state(checkpoint, log)
            if LEDGER in identity.files:
                check_ledger(own_files(checkpoint) / LEDGER)


def _greatest_told(history: HistorySettings | None, kinds: Kinds) -> int:
    # After a clock was set back, rows of an earlier job can have greater numbers than
    # the present time.
    tables = [
        table for kind in kinds if kind.has_findings for table in tables_of(kind)[1:]
    ]
    if history is not None:
        # If the directory is unusable, the exporter reports it.
        with suppress(OSError):
            return greatest_told(history.directory, tables)
    return 0


def _identity_of(
    settings: JobSettings, log: BatchLog, kinds: Kinds
) -> CheckpointIdentity:
    identity = check_identity(
        settings.checkpoint,
        settings.source.kafka.topic,
        settings.report_detail,
        has_batches=log.planned is not None,
        observer=settings.observer,
    )
    versions = {kind.prefix: kind.blob_version for kind in kinds}
    for prefix, stored in identity.state_versions.items():
        check_version(stored, versions.get(prefix, stored))
    identity.state_versions |= versions
    return identity
