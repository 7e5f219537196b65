"""A checkpoint belongs to one topic and one running job.

Spark's own files lie in the checkpoint's directory, ours in ``monitor/`` in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from connectors.lock import locked
from streaming.files import write_atomically


class CheckpointMismatch(ValueError):
    """The checkpoint was begun with other settings."""


class CheckpointUnwritable(OSError):
    """The checkpoint's directory cannot be made or written to.

    Attributes:
        checkpoint: Directory of the checkpoint.
    """

    def __init__(self, checkpoint: Path, reason: str) -> None:
        self.checkpoint = checkpoint
        super().__init__(
            f"checkpoint {checkpoint} cannot be written to ({reason}): use a "
            "directory of your own as --checkpoint"
        )


class CheckpointInUse(RuntimeError):
    """Another job runs on the checkpoint.

    Attributes:
        checkpoint: Directory of the checkpoint.
    """

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        super().__init__(
            f"another job runs on checkpoint {checkpoint}: end it, or use another "
            "--checkpoint"
        )


class CheckpointIdentity(msgspec.Struct):
    """Settings that a checkpoint was begun with; content of ``monitor/job.json``.

    Attributes:
        topic: The topic of frames.
        report_detail: Whether the checkpoint stores definite acknowledgements.
        starts: Number of jobs that were started on it, this one included.
    """

    topic: str
    report_detail: bool
    starts: int = 0


def own_files(checkpoint: Path) -> Path:
    """The directory of our own files in a checkpoint."""
    return checkpoint / "monitor"


@contextmanager
def locked_checkpoint(checkpoint: Path) -> Iterator[None]:
    """Lock a checkpoint while the block runs.

    Raises:
        CheckpointInUse: Another process has the lock.
        CheckpointUnwritable: The directory cannot be made or written to.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(own_files(checkpoint) / "lock"))
        except BlockingIOError:
            raise CheckpointInUse(checkpoint) from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise CheckpointUnwritable(checkpoint, reason) from error
        yield


def record_start(
    checkpoint: Path, topic: str, report_detail: bool
) -> CheckpointIdentity:
    """Check that a checkpoint fits a job, and count the start.

    Args:
        checkpoint: Directory of the checkpoint, locked by the caller.
        topic: The topic that the job reads.
        report_detail: Whether the job reports definite acknowledgements.

    Raises:
        CheckpointMismatch: The checkpoint was begun on another topic, or without
            ``--report-detail`` although the job asks for it.
    """
    path = own_files(checkpoint) / "job.json"
    if path.exists():
        identity = msgspec.json.decode(path.read_bytes(), type=CheckpointIdentity)
    else:
        identity = CheckpointIdentity(topic, report_detail)
    if identity.topic != topic:
        message = (
            f"checkpoint {checkpoint} was begun on topic {identity.topic}, "
            f"not {topic}: use another --checkpoint or --topic"
        )
        raise CheckpointMismatch(message)
    if report_detail and not identity.report_detail:
        message = (
            f"checkpoint {checkpoint} was begun without --report-detail, "
            "which must be given from the first start: use another --checkpoint"
        )
        raise CheckpointMismatch(message)
    identity.starts += 1
    write_atomically(path, msgspec.json.encode(identity).decode())
    return identity
