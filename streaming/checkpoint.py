"""Checks the identity of a checkpoint, and locks the checkpoint.

A checkpoint belongs to one topic, and only one running job may use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import msgspec

from sds_core.observer.settings_table import Values, read_values, settings_of, values_of
from sds_core.text import printable
from streaming.damage import (
    IDENTITY,
    LEDGER,
    DamagedCheckpoint,
    decoding,
    do_without,
    read_file,
    write_atomically,
)
from streaming.directories import locked_directory
from streaming.unfinished import Unfinished

_LONGEST_TOPIC = 249
"""Maximum length of a topic's name in Kafka, characters."""

_NEWER = "(of sds-monitor 0.16 or newer)"
"""Stored in `CheckpointIdentity.topic` instead of the name of a topic.

No topic can have this name.
"""

_FileName = Annotated[str, msgspec.Meta(pattern=r"^[\w.-]{1,100}\Z")]


class CheckpointMismatch(ValueError):
    """The checkpoint was begun with another topic, level of detail, or model."""


class CheckpointIdentity(msgspec.Struct):
    """Content of ``monitor/job.json``: how a checkpoint was begun, and its last start.

    Attributes:
        topic: The topic of frames. In the file, releases since 0.16 store `_NEWER`
            instead, so that releases up to 0.15 refuse the checkpoint. These older
            releases do not know the ledger.
        starts: Number of jobs that were started on the checkpoint, including the
            current job.
        files: Names of the files in ``monitor/``, except ``job.json``. A release up to
            0.6 writes an empty list, which stands for all existing files.
        observer: All settings of the model. Empty in a file of a release that did not
            have these settings; the defaults then apply.
        unfinished: The last unfinished batch that a start found; None if no start has
            found one. Releases up to 0.12 ignore this field.
        observed_topic: The topic of frames in the file, if a release since 0.16 wrote
            the file; otherwise empty.
        state_versions: Prefix of a kind -> newest version of the kind's state that may
            be in the checkpoint. Empty in a file of a release up to 0.17.
    """

    topic: str
    report_detail: bool
    starts: Annotated[int, msgspec.Meta(ge=0)] = 0
    files: list[_FileName] = []
    observer: dict[str, int | float] = {}
    unfinished: Unfinished | None = None
    observed_topic: str = ""
    state_versions: dict[str, int] = {}


def own_files(checkpoint: Path) -> Path:
    """The directory of the monitor's own files; the other directories are Spark's."""
    return checkpoint / "monitor"


def locked_checkpoint(checkpoint: Path) -> AbstractContextManager[None]:
    """Lock a checkpoint while the ``with`` block runs; see `locked_directory`."""
    return locked_directory("checkpoint", checkpoint, "monitor/lock")


def check_identity(
    checkpoint: Path,
    topic: str,
    report_detail: bool,
    has_batches: bool,
    observer: Values = MappingProxyType({}),
) -> CheckpointIdentity:
    """Check that a locked checkpoint fits a job, and return its identity.

    A new checkpoint gets the settings of the model in `observer`, and the defaults for
    settings of the model that `observer` omits.

    Raises:
        CheckpointMismatch: The checkpoint was begun with other settings.
        DamagedCheckpoint: A file is missing or has the wrong content.
    """
    identity = _read_identity(checkpoint, topic, report_detail, has_batches, observer)
    if topic.startswith(f"{identity.topic},"):
        # Topics were added to those of the checkpoint. The job reads the added topics
        # from their start, as it reads added partitions.
        identity.topic = topic
    if identity.topic != topic:
        begun_on = printable(identity.topic)[:_LONGEST_TOPIC]
        message = (
            f"checkpoint {checkpoint} was begun with topic {begun_on}, not {topic}: "
            "use another --checkpoint or --topic"
        )
        raise CheckpointMismatch(message)
    if report_detail and not identity.report_detail:
        message = (
            f"checkpoint {checkpoint} was begun without --report-detail, which cannot "
            "be added later: omit this option, or use another --checkpoint"
        )
        raise CheckpointMismatch(message)
    identity.observer = _observer_of(checkpoint, identity, observer, has_batches)
    if has_batches and not identity.files:
        identity.files = [
            path.name
            for path in own_files(checkpoint).iterdir()
            # An unlisted ledger is not added, because it is left from a job that was
            # killed at startup.
            if path.suffix in (".json", ".sqlite")
            and path.name not in (IDENTITY, LEDGER)
        ]
    for name in identity.files:
        path = own_files(checkpoint) / name
        if not path.exists():
            raise DamagedCheckpoint(path, "is missing", do_without(path))
        if not path.stat().st_size:
            raise DamagedCheckpoint(path, "is empty", do_without(path))
    return identity


def _observer_of(
    checkpoint: Path, identity: CheckpointIdentity, given: Values, has_batches: bool
) -> dict[str, int | float]:
    is_new = not (has_batches or (own_files(checkpoint) / IDENTITY).exists())
    remedy = "restore the checkpoint from a backup"
    with decoding(own_files(checkpoint) / IDENTITY, remedy):
        begun = settings_of(
            given if is_new else read_values(identity.observer, are_stored=True)
        )
    stored = values_of(begun)
    for name, value in given.items():
        if stored[name] != value:
            message = (
                f"checkpoint {checkpoint} was begun with {name} = {stored[name]}, but "
                f"[observer] sets {name} = {value}: use another --checkpoint, or omit "
                f"{name} from [observer]"
            )
            raise CheckpointMismatch(message)
    return stored


def record_start(
    checkpoint: Path, identity: CheckpointIdentity, files: Iterable[str]
) -> CheckpointIdentity:
    """Store that a job was started on a locked checkpoint, and the names in `files`.

    Returns the stored identity, with the name of the topic instead of `_NEWER`.
    """
    started = msgspec.structs.replace(
        identity, starts=identity.starts + 1, files=sorted(files)
    )
    path = own_files(checkpoint) / IDENTITY
    stored = msgspec.structs.replace(
        started, topic=_NEWER, observed_topic=identity.topic
    )
    write_atomically(path, msgspec.json.encode(stored).decode())
    return started


def _read_identity(
    checkpoint: Path,
    topic: str,
    report_detail: bool,
    has_batches: bool,
    observer: Values,
) -> CheckpointIdentity:
    path = own_files(checkpoint) / IDENTITY
    new = CheckpointIdentity(topic, report_detail)
    begun = msgspec.structs.replace(new, observer=values_of(settings_of(observer)))
    remedy = (
        "restore the checkpoint from a backup, or write "
        f"{msgspec.json.encode(begun).decode()} to this file, if the topic and the "
        "settings in [observer] are those of the checkpoint"
    )
    if not (path.exists() or has_batches):
        return new
    data = read_file(path, remedy)
    with decoding(path, remedy):
        stored = msgspec.json.decode(data, type=CheckpointIdentity)
    topic = stored.observed_topic or stored.topic
    return msgspec.structs.replace(stored, topic=topic, observed_topic="")
