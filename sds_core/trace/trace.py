"""`Trace`, which shows what happened to one message, and the reader that builds it.

This module reads neither a topic nor a clock; callers give the rows and the time. The
code that makes rows from records, and the code of the views, are those of the job.
Therefore, a trace has the same conclusions as a job that reads the same records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from sds_core.observer.blindness import coincides_with_hole, holes_of
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.kinds import AnyProtocol
from sds_core.observer.record import NO_SEQ
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapDigest, TapView
from sds_core.observer.tracing import Evidence, Step, Subject

_NO_NUMBER = NO_SEQ.to_bytes(8, "little", signed=True)


class Untraceable(ValueError):
    """A protocol does not support traces."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        super().__init__(f"messages of the protocol {protocol} cannot be traced")


class Trace(msgspec.Struct, frozen=True):
    """What happened to one message.

    Attributes:
        taps: Taps whose records were read. Each tap has a list of periods (from, to;
            Unix ms) in which the tap may have missed records.
        in_gaps: Kinds of the message's incidents that coincide with capture gaps. For
            each of these incidents, every tap of the channel had a capture gap while
            the incident arose or shortly before.
        records: Number of records of the channel that were read.
        from_ms: Record time of the first record that was read, Unix ms; None if no
            record was read.
        to_ms: Event time up to which records were read, Unix ms; None if unknown.
    """

    protocol: str
    evidence: Evidence
    taps: Mapping[str, Sequence[tuple[int, int]]]
    settings: ObserverSettings
    in_gaps: frozenset[IncidentKind] = frozenset()
    records: int = 0
    from_ms: int | None = None
    to_ms: int | None = None

    @property
    def channel(self) -> str:
        """Name of the message's channel or group."""
        return self.evidence.subject.channel

    @property
    def message_id(self) -> str:
        """Id of the message."""
        return self.evidence.subject.message_id

    @property
    def begin_ms(self) -> int:
        """Time that counts as 0 for the trace's relative times, Unix ms."""
        appeared_ms = self.evidence.appeared_ms
        return appeared_ms if appeared_ms is not None else self.from_ms or 0


class TraceReader:
    """Builds the traces of one channel's messages from the digests of records.

    The reader runs the views of the taps and the protocol's tracer.

    Args:
        subjects: Messages to trace, all of the same channel.
        has_all_numbers: Whether the rows include all records of the taps. Only in this
            case, a missing sequence number means that a tap missed a record.

    Raises:
        Untraceable: The protocol does not support traces.
    """

    def __init__(
        self,
        protocol: AnyProtocol,
        subjects: Sequence[Subject],
        settings: ObserverSettings,
        *,
        has_all_numbers: bool,
        unread: Sequence[str] = (),
    ) -> None:
        if protocol.tracing is None:
            raise Untraceable(protocol.name)
        self._protocol = protocol
        self._settings = settings
        self._has_all_numbers = has_all_numbers
        self._unread = unread
        self._tracer = protocol.tracing.tracer(subjects, settings)
        self._taps: defaultdict[str, TapView] = defaultdict(lambda: TapView(settings))
        self._clock_ms = 0

    def take(self, rows: Iterable[tuple[str, bytes]], clock_ms: int) -> None:
        """Process the rows of the next records, then advance the reader's clock.

        A row consists of a view's key and an encoded digest. Rows are ignored unless
        their view is a tap, or a channel or group of the protocol. `clock_ms` is the
        event time up to which all records have been given to the reader, Unix ms.
        """
        kind = self._protocol.kind
        digests: defaultdict[str, list[Any]] = defaultdict(list)
        taps: defaultdict[str, list[TapDigest]] = defaultdict(list)
        for key, packed in rows:
            prefix, _, name = key.partition(":")
            if prefix == kind.prefix:
                digests[name].append(msgspec.msgpack.decode(packed, type=kind.digest))
            elif prefix == TAPS.prefix:
                digest = msgspec.msgpack.decode(packed, type=TapDigest)
                taps[name].append(self._numbered(digest))
        self._clock_ms = max(self._clock_ms, clock_ms)
        self._tracer.take(digests, self._clock_ms)
        for name in {*taps, *self._taps}:
            self._taps[name].apply(taps.get(name, ()), self._clock_ms)

    def traces(
        self, records: int, from_ms: int | None, to_ms: int | None
    ) -> list[Trace]:
        """Return the current `Trace` of each message, in the order of `subjects`."""
        seen = {name: view.totals for name, view in sorted(self._taps.items())}
        known = [name for name, totals in seen.items() if totals.last_seen_ms]
        taps = holes_of(known, seen, self._clock_ms, self._settings)
        return [
            Trace(
                self._protocol.name,
                self._complete(one, taps),
                taps,
                self._settings,
                self._in_gaps(one),
                records,
                from_ms,
                to_ms,
            )
            for one in self._tracer.evidence()
        ]

    def _in_gaps(self, evidence: Evidence) -> frozenset[IncidentKind]:
        taps = {name: view.totals for name, view in self._taps.items()}
        settings = self._settings
        return frozenset(
            one.kind
            for one in evidence.incidents
            if coincides_with_hole(
                evidence.observers,
                taps,
                one.since_ms - settings.tap_hole_ms,
                one.found_ms,
                self._clock_ms,
                settings,
            )
        )

    def _numbered(self, digest: TapDigest) -> TapDigest:
        """Return the digest, without sequence numbers if not all records are read."""
        if self._has_all_numbers:
            return digest
        return msgspec.structs.replace(
            digest,
            seqs=_NO_NUMBER * (len(digest.seqs) // len(_NO_NUMBER)),
            heartbeat_seqs=_NO_NUMBER * (len(digest.heartbeat_seqs) // len(_NO_NUMBER)),
        )

    def _complete(
        self, evidence: Evidence, taps: Mapping[str, Sequence[tuple[int, int]]]
    ) -> Evidence:
        """Add steps for capture gaps of taps, and sentences about what is not known."""
        if evidence.appeared_ms is None:
            return evidence
        settings = self._settings
        # If a frame names the message and no copy is known, the message may have been
        # sent up to `gap_deadline_ms` before this frame. Earlier gaps are not relevant.
        since_ms = evidence.appeared_ms - settings.gap_deadline_ms
        gaps = [
            Step(
                max(first_ms, since_ms),
                "tap_gap",
                f"{self._gap_text(first_ms, last_ms)}: it may have missed records",
                tap=name,
            )
            for name, spans in taps.items()
            for first_ms, last_ms in spans
            if last_ms >= since_ms
            and first_ms <= evidence.appeared_ms + settings.horizon_ms
        ]
        texts = list(self._unread)
        if not self._has_all_numbers:
            texts.append(
                "sequence gaps of taps are not known: only the channel's partition was "
                "read"
            )
        if not taps:
            texts.append("no record names its tap: capture gaps are not known")
        if evidence.omitted:
            texts.append(f"{evidence.omitted:,} further steps are not shown")
        unknown = [*evidence.unknown, *((text, ()) for text in texts)]
        steps = sorted([*evidence.steps, *gaps], key=lambda one: one.at_ms)
        return msgspec.structs.replace(evidence, steps=steps, unknown=unknown)

    def _gap_text(self, first_ms: int, last_ms: int) -> str:
        """Return a text that does not change with each record while the gap grows.

        The tap's next record may come `tap_hole_ms` after `last_ms`, and a sequence
        number counts as missing `tap_hole_ms` after this record.
        """
        if self._clock_ms <= last_ms + 2 * self._settings.tap_hole_ms:
            return "capture gap whose end is not known yet"
        return f"capture gap of {(last_ms - first_ms) / 1000:,.0f} s"
