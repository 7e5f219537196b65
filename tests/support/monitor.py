"""The monitor without Kafka and Spark: records in, report and incidents out."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from connectors.kafka.producer import TopicRecord
from sds_core.observer.blindness import coincides_with_hole, judge_blindness
from sds_core.observer.incidents import ChannelIncident, Incident
from sds_core.observer.kinds import Grouping, View
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.record import RawRecord, is_future
from sds_core.observer.report import build_report
from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from sds_core.observer.sds.totals import ChannelMinute
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.snapshot import Snapshot, Views
from streaming.board import GroupParts
from streaming.chunk import Chunk
from tests.support.identities import assert_identities

_NEVER_MS = 1 << 62
_KINDS = kinds_of(PROTOCOLS)

Batch = tuple[Sequence[TopicRecord], int]
"""Records, and the admission time T of the batch that holds them, Unix ms."""

IncidentKey = tuple[str, str, str]
"""Channel, kind and message id."""


def report_of(records: Iterable[TopicRecord]) -> dict[str, Any]:
    """Return the report on a topic that was read completely, in one batch."""
    monitor = Monitor()
    for batch in batches(list(records)):
        monitor.read(*batch)
    return monitor.report()


def batches(
    records: Sequence[TopicRecord], size: int | None = None, wall_ms: int = _NEVER_MS
) -> Iterator[Batch]:
    """Cut a topic into batches.

    T is the greatest such that all records before it are read: no record that is left
    has an earlier time, or an earlier one in its partition had not. After the last it
    is the greatest record time.

    Args:
        records: In the order in which they are read.
        size: Records of a batch; None for all in one.
        wall_ms: Wall time of every admission, Unix ms; later records move no clock.
    """
    newest: dict[int, int] = {}
    clocks: list[int] = []
    for record in records:
        newest.setdefault(record.partition, 0)
        if not is_future(record.timestamp_ms, wall_ms):
            newest[record.partition] = max(
                newest[record.partition], record.timestamp_ms
            )
        clocks.append(newest[record.partition])
    end_ms = max(clocks, default=0)
    admitted = list(itertools.accumulate([end_ms, *reversed(clocks)], min))[::-1]
    size = size or max(1, len(records))
    for begin in range(0, len(records), size):
        batch = records[begin : begin + size]
        yield batch, admitted[begin + len(batch)]


class Monitor:
    """Reads a topic batch by batch, as the job does.

    Args:
        restarts: Whether each view is made anew from its blob whenever it is called, as
            in the job, and not just kept.
        wall_ms: Wall time of every admission, Unix ms.

    Attributes:
        acknowledgements: Definite ones by channel, as they were told.
        incidents: Each as it was told last.
        minutes: Those told by channel, in order.
    """

    def __init__(self, restarts: bool = False, wall_ms: int = _NEVER_MS) -> None:
        self._restarts = restarts
        self._wall_ms = wall_ms
        self._clock_ms = 0
        self._chunks: dict[int, Chunk] = {}
        self._offsets: defaultdict[int, itertools.count[int]] = defaultdict(
            itertools.count
        )
        self._views: dict[str, View[Any, Any, Any]] = {}
        self._deadlines: dict[str, int] = {}
        self._in_hole: set[IncidentKey] = set()
        self.acknowledgements: defaultdict[str, list[DefiniteAcknowledgement]] = (
            defaultdict(list)
        )
        self.incidents: dict[IncidentKey, Incident] = {}
        self.minutes: defaultdict[str, list[ChannelMinute]] = defaultdict(list)

    def read(
        self,
        records: Iterable[TopicRecord],
        clock_ms: int,
        written_ms: Iterable[int] = (),
    ) -> dict[IncidentKey, Incident]:
        """Read the next batch; call each view that it or a deadline concerns.

        Args:
            records: Of any partitions.
            clock_ms: Admission time T, Unix ms.
            written_ms: When each record was written at the latest, Unix ms; none for
                the wall time.

        Returns:
            The incidents that it began or changed, as they are now.
        """
        self._clock_ms = clock_ms
        digests: defaultdict[str, list[bytes]] = defaultdict(list)
        for record, latest_ms in itertools.zip_longest(records, written_ms):
            chunk = self._chunks.setdefault(
                record.partition, Chunk(record.partition, 0)
            )
            chunk.add(
                RawRecord(
                    record.partition,
                    next(self._offsets[record.partition]),
                    record.timestamp_ms,
                    record.key,
                    record.value,
                    record.headers,
                ),
                self._wall_ms if latest_ms is None else latest_ms,
            )
            if chunk.is_full:
                _pass_on(chunk, digests)
        for chunk in self._chunks.values():
            _pass_on(chunk, digests)
        for key, deadline_ms in self._deadlines.items():
            if deadline_ms < clock_ms:
                digests.setdefault(key, [])
        told: dict[IncidentKey, Incident] = {}
        for key, packed in digests.items():
            told |= self._call(key, packed)
        self.incidents |= told
        self._mark_incidents()
        return told

    @property
    def snapshot(self) -> Snapshot:
        """Return all current figures, with verdicts that include tap health."""
        totals: dict[str, dict[str, Any]] = {kind.prefix: {} for kind in _KINDS}
        for key, view in self._views.items():
            kind, name = _KINDS.split(key)
            totals[kind.prefix][name] = view.totals
        for kind in _KINDS:
            if kind.grouping is not None:
                totals[kind.prefix] = _groups(kind.grouping, totals[kind.prefix])
        views = {kind.prefix: Views(kind, totals[kind.prefix]) for kind in _KINDS}
        return judge_blindness(Snapshot(clock_ms=self._clock_ms).with_views(views))

    def states(self) -> dict[str, bytes]:
        """Return the blob of every view."""
        return {key: view.to_blob() for key, view in self._views.items()}

    def report(self, with_detail: bool = False) -> dict[str, Any]:
        """Return the current report.

        Args:
            with_detail: As ``--report-detail``: every definite acknowledgement and
                every incident.
        """
        details = incidents = None
        if with_detail:
            details = {
                channel: [
                    (one.message_id, one.latency_ms)
                    for one in sorted(told, key=lambda one: (one.t0_ms, one.message_id))
                ]
                for channel, told in self.acknowledgements.items()
            }
            incidents = [
                ChannelIncident(key[0], incident, key in self._in_hole)
                for key, incident in self.incidents.items()
            ]
        report = build_report(self.snapshot, self._clock_ms, details, incidents)
        assert_identities(report)
        return report

    def _call(self, key: str, packed: Sequence[bytes]) -> dict[IncidentKey, Incident]:
        kind, name = _KINDS.split(key)
        view = self._views.get(key) or kind.view()
        if self._restarts and key in self._views:
            view = kind.view.from_blob(kind.blob_version, view.to_blob())
        told: dict[IncidentKey, Incident] = {}
        for event in view.apply(
            [msgspec.msgpack.decode(one, type=kind.digest) for one in packed],
            self._clock_ms,
        ):
            if isinstance(event, Incident):
                told[name, *event.key] = event
            elif isinstance(event, DefiniteAcknowledgement):
                self.acknowledgements[name].append(event)
            elif isinstance(event, ChannelMinute):
                self.minutes[name].append(event)
        self._views[key] = view
        deadline_ms = view.next_deadline_ms
        self._deadlines[key] = _NEVER_MS if deadline_ms is None else deadline_ms
        if view.is_forgotten:
            del self._views[key], self._deadlines[key]
        return told

    def _mark_incidents(self) -> None:
        """Mark incidents that a tap hole may have caused; marks stay."""
        unmarked = self.incidents.keys() - self._in_hole
        if not unmarked:
            return
        snapshot = self.snapshot
        for key in unmarked:
            incident = self.incidents[key]
            if coincides_with_hole(
                snapshot.views["sds"].totals[key[0]].observers,
                snapshot.taps,
                incident.since_ms - DEFAULTS.tap_hole_ms,
                incident.found_ms,
                snapshot.clock_ms,
            ):
                self._in_hole.add(key)


def _groups(grouping: Grouping[Any, Any], totals: Mapping[str, Any]) -> dict[str, Any]:
    parts = GroupParts(grouping)
    groups = {group for name, one in totals.items() for group in parts.take(name, one)}
    return {group: parts.join(group) for group in groups}


def _pass_on(chunk: Chunk, digests: defaultdict[str, list[bytes]]) -> None:
    for row in chunk.take_rows():
        digests[row.key].append(row.digest)
