"""A driver that feeds frames to a channel's view as the streaming job does."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.incidents import Incident
from sds_core.observer.record import NO_HASH, NO_SEQ
from sds_core.observer.report import build_report
from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from sds_core.observer.sds.channel_state import BLOB_VERSION
from sds_core.observer.sds.channel_view import ChannelEvent, ChannelView
from sds_core.observer.sds.digest import Arrival, ChannelDigest, ChannelDigester
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.wire import Dialect, Frame, decode, encode
from tests.support import identities
from tests.support.digests import packed, unpacked
from tests.support.frames import START_MS, FrameFactory, Record, running_clocks
from tests.support.snapshots import snapshot_of

START_LAMPORT = 100
"""L0 of a channel from `Channel.after_warm_up`, in both dialects."""

Incidents = dict[tuple[str, str], Incident]
"""Latest record of each incident, by kind and message id."""


@functools.lru_cache(maxsize=4096)
def _decoded(value: bytes) -> Frame:
    return decode(value)


@functools.lru_cache(maxsize=4096)
def _encoded(frame: Frame) -> bytes:
    return encode(frame)


def digest_of(
    records: Iterable[tuple[Record, int]], first_offset: int = 0, partition: int = 0
) -> ChannelDigest:
    """Return records with their clocks as one digest that was packed and unpacked."""
    digester = ChannelDigester(partition)
    for offset, (record, clock_ms) in enumerate(records, first_offset):
        value = _encoded(record.frame)
        arrival = Arrival(
            offset,
            START_MS + record.at,
            START_MS + clock_ms,
            record.observer,
            NO_SEQ if record.seq is None else record.seq,
            NO_HASH if record.waku_hash is None else record.waku_hash,
        )
        digester.add(_decoded(value), value, arrival)
    return unpacked(packed(digester.finish()))


class Channel:
    """One channel whose frames are added one by one, in topic order.

    Every call goes to two views, one of which is packed into its blob and unpacked
    again each time: they must always agree, and the identities of the figures hold.
    All times are ms since `START_MS`.

    Attributes:
        frames: Builds the frames.
        clock_ms: The channel's clock.
        details: All definite acknowledgements so far.
        incidents: Latest record of each incident, by kind and message id.
    """

    def __init__(
        self,
        settings: ObserverSettings = DEFAULTS,
        dialect: Dialect = Dialect.SPEC,
    ) -> None:
        self.frames = FrameFactory(dialect=dialect)
        self.clock_ms = 0
        self.details: list[DefiniteAcknowledgement] = []
        self.incidents: Incidents = {}
        self._settings = settings
        self._offset = 0
        self._view = ChannelView(settings)
        self._packed = self._view.to_blob()

    @classmethod
    def after_warm_up(
        cls, settings: ObserverSettings = DEFAULTS, dialect: Dialect = Dialect.SPEC
    ) -> Channel:
        """Return a channel at 60 s, warmed up by a frame without sender at 0."""
        channel = cls(settings, dialect)
        for spoken in Dialect:
            channel.sync("", at=0, lamport=START_LAMPORT, dialect=spoken)
        channel.clock(60_000)
        return channel

    @property
    def totals(self) -> ChannelTotals:
        """The current totals."""
        return self._view.totals

    @property
    def verdict(self) -> tuple[str, str]:
        """The verdict and its reason."""
        return self.totals.verdict.value, self.totals.verdict_reason

    @property
    def next_deadline_ms(self) -> int | None:
        """When the view must be called next; None if never."""
        deadline_ms = self._view.next_deadline_ms
        return None if deadline_ms is None else deadline_ms - START_MS

    def take(
        self,
        frame: Frame,
        at: int,
        *,
        observer: str = "",
        seq: int = NO_SEQ,
        waku_hash: str = "",
    ) -> Frame:
        """Append a record with this frame to the topic; return the frame."""
        self.take_records(
            [
                Record(
                    at,
                    frame,
                    observer,
                    seq,
                    fingerprint(waku_hash) if waku_hash else NO_HASH,
                )
            ]
        )
        return frame

    def take_records(self, records: Sequence[Record]) -> None:
        """Append records to the topic, as one digest."""
        clocked = list(
            zip(records, running_clocks(records, self.clock_ms), strict=True)
        )
        digest = digest_of(clocked, self._offset)
        self._offset += len(records)
        self._apply([digest], clocked[-1][1])

    def content(
        self,
        message_id: str,
        sender: str,
        at: int,
        lamport: int = 1_000,
        *,
        observer: str = "",
        seq: int = NO_SEQ,
        waku_hash: str = "",
        **of_frame: Any,
    ) -> Frame:
        """A content frame; see `FrameFactory.content`."""
        frame = self.frames.content(message_id, sender, lamport, **of_frame)
        return self.take(frame, at, observer=observer, seq=seq, waku_hash=waku_hash)

    def sync(
        self, sender: str, at: int, lamport: int = 1_000, **of_frame: Any
    ) -> Frame:
        """A sync frame; see `FrameFactory.sync`."""
        return self.take(self.frames.sync(sender, lamport, **of_frame), at)

    def ephemeral(self, sender: str, at: int) -> Frame:
        """An ephemeral frame."""
        return self.take(self.frames.ephemeral(sender), at)

    def clock(self, clock_ms: int) -> None:
        """Move the admission time without a record."""
        self._apply([], clock_ms)

    def wake(self) -> int:
        """Call the view as late as its next deadline allows; return that time."""
        deadline_ms = self.next_deadline_ms
        assert deadline_ms is not None
        self.clock(deadline_ms + 1)
        return deadline_ms

    def rest(self) -> None:
        """Wake the view until it has no deadline."""
        for _ in range(1_000):
            if self.next_deadline_ms is None:
                return
            self.wake()
        raise AssertionError("the view never rests")

    def _apply(self, digests: list[ChannelDigest], clock_ms: int) -> None:
        self.clock_ms = max(self.clock_ms, clock_ms)
        events = self._view.apply(digests, START_MS + clock_ms)
        twin = ChannelView.from_blob(BLOB_VERSION, self._packed, self._settings)
        assert twin.apply(digests, START_MS + clock_ms) == events
        self._packed = twin.to_blob()
        assert twin.totals == self.totals
        acknowledged, incidents = parted(events)
        self.details += acknowledged
        self.incidents |= incidents
        assert_identities(self.totals)
        deadline_ms = self.next_deadline_ms
        assert deadline_ms is None or deadline_ms >= self.clock_ms


def parted(
    events: Iterable[ChannelEvent],
) -> tuple[list[DefiniteAcknowledgement], Incidents]:
    """Split a view's events into acknowledgements and incidents."""
    acknowledged: list[DefiniteAcknowledgement] = []
    incidents: Incidents = {}
    for event in events:
        if isinstance(event, Incident):
            incidents[event.key] = event
        elif isinstance(event, DefiniteAcknowledgement):
            acknowledged.append(event)
    return acknowledged, incidents


def assert_identities(totals: ChannelTotals) -> None:
    """Check what is true at every moment; see `tests.support.identities`."""
    snapshot = snapshot_of(channels={"channel": totals})
    identities.assert_identities(build_report(snapshot, 0))
    assert (totals.oldest_in_flight_ms is None) == (totals.in_flight == 0)
