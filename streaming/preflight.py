"""Refuses a start that cannot succeed before Spark starts, which takes 20 to 30 s."""

from __future__ import annotations

from streaming.batch_log import BatchLog, read_batch_log
from streaming.checkpoint import CheckpointIdentity, check_identity, locked_checkpoint
from streaming.history import locked_history
from streaming.settings import JobSettings


def check_start(settings: JobSettings) -> None:
    """Check what a job needs of the disk, as far as that is quick.

    Raises:
        streaming.checkpoint.CheckpointInUse: Another job runs on the checkpoint.
        streaming.checkpoint.CheckpointMismatch: See `identity_of`.
        streaming.checkpoint.CheckpointUnwritable: The checkpoint cannot be written to.
        streaming.damage.DamagedCheckpoint: The checkpoint is damaged.
        streaming.history.HistoryInUse: Another job writes to its history.
        streaming.history.HistoryUnwritable: The history cannot be written to.
    """
    with locked_checkpoint(settings.checkpoint):
        identity_of(settings, read_batch_log(settings.checkpoint))
        if settings.history is not None:
            with locked_history(settings.history.directory):
                pass


def identity_of(settings: JobSettings, log: BatchLog) -> CheckpointIdentity:
    """Return the identity of a job's checkpoint, which is locked by the caller.

    Args:
        settings: Settings of the job.
        log: The checkpoint's log of batches.

    Raises:
        streaming.checkpoint.CheckpointMismatch: The checkpoint was begun for another
            topic, without ``--report-detail``, or with other settings of the model.
        streaming.damage.DamagedCheckpoint: A file is missing or has the wrong content.
    """
    return check_identity(
        settings.checkpoint,
        settings.source.kafka.topic,
        settings.report_detail,
        has_batches=log.planned is not None,
        observer=settings.observer,
    )
