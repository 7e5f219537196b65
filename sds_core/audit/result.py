"""Results of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sds_core.audit.mirrored import MirroredMessage
from sds_core.text import counted, iso_time

_NS_PER_MS = 1_000_000


class AuditedMessage(NamedTuple):
    """A message that one side lacks; an unknown topic or channel is empty.

    For the time and the hash, see `sds_core.prolly.item.Item`.
    """

    timestamp_ns: int
    message_hash: bytes
    pubsub_topic: str = ""
    content_topic: str = ""
    channel: str = ""


class AuditResult(NamedTuple):
    """Result of a comparison of a mirror with a store or another mirror.

    Attributes:
        other: Name of the other side, as the operator entered it.
        start_ns, end_ns: The period that was compared, in the senders' timestamps, Unix
            ns; the end is exclusive.
        here, there: Number of compared messages of the mirror, and of the other side.
        missing_here: Messages that only the other side has, in order of time.
        missing_there: Messages that only the mirror has, in order of time.
        unidentified: Number of the mirror's records that lack a valid hash or a valid
            time of their message.
        remirrored: Number of messages in `missing_here` that were written to the mirror
            after the comparison.
        mirror_begin_ms: Time of the mirror's first record, Unix ms; None if the mirror
            has no records.
    """

    other: str
    start_ns: int
    end_ns: int
    here: int
    there: int
    missing_here: Sequence[AuditedMessage]
    missing_there: Sequence[AuditedMessage]
    unidentified: int = 0
    remirrored: int = 0
    mirror_begin_ms: int | None = None

    @property
    def missing_before_begin(self) -> int:
        """Number of messages in `missing_here` that are older than `mirror_begin_ms`.

        The mirror did not run yet when these messages were sent, or retention deleted
        their records.
        """
        if self.mirror_begin_ms is None:
            return 0
        begin_ns = self.mirror_begin_ms * _NS_PER_MS
        return sum(0 < one.timestamp_ns < begin_ns for one in self.missing_here)

    @property
    def is_complete(self) -> bool:
        """Whether the mirror now has all messages that the other side has."""
        return self.remirrored == len(self.missing_here)

    @property
    def newest_missing_ms(self) -> Mapping[str, int]:
        """For each channel, the time of its newest message in `missing_here`, Unix ms.

        The key of messages with an unknown channel is empty. If all messages in
        `missing_here` were written to the mirror after the comparison, the mapping is
        empty.
        """
        if self.is_complete:
            return {}
        newest: dict[str, int] = {}
        for one in self.missing_here:
            time_ms = one.timestamp_ns // _NS_PER_MS
            newest[one.channel] = max(newest.get(one.channel, 0), time_ms)
        return newest

    def __str__(self) -> str:
        """Return the result in one line."""
        if not (self.missing_here or self.missing_there):
            return f"complete: {counted(self.here, 'message')} here and there"
        missing_here = f"{len(self.missing_here):,} missing here"
        if before := self.missing_before_begin:
            begin = iso_time(self.mirror_begin_ms or 0)
            missing_here += (
                f" ({before:,} from before the mirror's first record at {begin})"
            )
        parts = [missing_here, f"{len(self.missing_there):,} missing there"]
        if self.remirrored:
            parts.append(f"{self.remirrored:,} mirrored again")
        numbers = f"{self.here:,} messages here, {self.there:,} there"
        return f"{', '.join(parts)} ({numbers})"


def audited(message: MirroredMessage) -> AuditedMessage:
    """Convert a mirror's message to the type of the messages in `AuditResult`."""
    return AuditedMessage(
        message.item.timestamp_ns,
        message.item.message_hash,
        message.pubsub_topic,
        message.content_topic,
        message.channel,
    )
