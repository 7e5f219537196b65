"""Opens a checkpoint for a job, after all checks of what Spark would read silently."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from typing import NamedTuple

from sds_core.observer.kinds import Kinds
from streaming.batch_log import BatchLog, complete, position_of, read_batch_log
from streaming.checkpoint import CheckpointIdentity
from streaming.ledger.importing import open_ledger
from streaming.ledger.stores import Stores
from streaming.preflight import identity_of
from streaming.settings import JobSettings
from streaming.state_files import check_state
from streaming.unfinished import next_unfinished, plan_again


class OpenCheckpoint(NamedTuple):
    """An opened checkpoint.

    Attributes:
        log: Its newest batches.
        identity: Its identity, with this start counted.
        stores: What is stored beside it.
        position_of: Returns all that decides the rows of a planned batch.
    """

    log: BatchLog
    identity: CheckpointIdentity
    stores: Stores
    position_of: Callable[[int], str]


def open_checkpoint(settings: JobSettings, kinds: Kinds) -> OpenCheckpoint:
    """Check and open a checkpoint, and make it ready for Spark."""
    checkpoint = settings.checkpoint
    log = read_batch_log(checkpoint)
    check_state(checkpoint, log)
    identity = identity_of(settings, log)
    identity.unfinished = next_unfinished(log, identity.unfinished)
    identity, ledger = open_ledger(
        checkpoint,
        identity,
        kinds,
        log.committed,
        first_sequence=time.time_ns() // 1_000,
    )
    plan_again(checkpoint, log, identity.unfinished)
    complete(checkpoint, log)

    def position(batch: int) -> str:
        # A repeated batch has the same rows only under the same rules and options.
        options = settings.forget_ms, settings.history is not None
        return f"{version('sds-monitor')} {options} {position_of(checkpoint, batch)}"

    batch = 0 if log.committed is None else log.committed + 1
    is_planned = (checkpoint / "offsets" / str(batch)).exists()
    ledger.begin(log.committed, position(batch) if is_planned else None)
    stores = Stores.of(ledger, kinds, settings.label_budget, identity.report_detail)
    stores.register.begin(0 if log.position is None else log.position.requests)
    return OpenCheckpoint(log, identity, stores, position)
