"""The view of one channel."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from sds_core.native import native
from sds_core.observer import blob
from sds_core.observer.deadlines import NEVER
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.incidents import Incident
from sds_core.observer.journal import Journal
from sds_core.observer.minutes import Minutes
from sds_core.observer.sds import version_1, version_4
from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from sds_core.observer.sds.channel_model import ChannelModel
from sds_core.observer.sds.channel_state import (
    BLOB_VERSION,
    CHECKSUM_SINCE,
    ChannelState,
)
from sds_core.observer.sds.digest import ChannelDigest
from sds_core.observer.sds.seen_frames import SeenFrame, frames_of
from sds_core.observer.sds.totals import ChannelMinute, ChannelTotals
from sds_core.observer.settings import DEFAULTS, ObserverSettings

_OLD_VERSION = 4
"""The newest blob version that does not store messages as a table."""

_SENDERS_SINCE = 7
"""The first blob version that stores the time of the latest content frame that
names its sender."""

_MOMENTARY = {"evidence": None, "participant_table": b"", "suspects": None}
"""Momentary fields of the totals, with the values that replace them in per-minute
aggregates and in the totals of forgotten views."""

ChannelEvent = DefiniteAcknowledgement | Incident | ChannelMinute | Forgotten
"""The types of events that `ChannelView.apply` returns."""


@native
class ChannelView:
    """Tracks one channel, as far as its frames show a passive observer its state.

    If the channel is silent for longer than `forget_ms`, the view forgets the channel.
    A later frame then starts a new channel with the same name.
    """

    _settings: ObserverSettings
    totals: ChannelTotals
    _state: ChannelState
    _model: ChannelModel
    _minutes: Minutes[ChannelTotals, ChannelMinute]
    _journal: Journal | None

    def __init__(
        self,
        settings: ObserverSettings = DEFAULTS,
        totals: ChannelTotals | None = None,
        state: ChannelState | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._begin(totals or ChannelTotals(), state or ChannelState())

    def _begin(self, totals: ChannelTotals, state: ChannelState) -> None:
        self.totals = totals
        self._state = state
        self._model = ChannelModel(self._settings, totals, state, self._journal)
        self._minutes = Minutes(
            ChannelMinute, totals, state.minutes, state.clock_ms, momentary=_MOMENTARY
        )

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> ChannelView:
        """Restore the view that `to_blob` encoded; see `View.from_blob`."""
        with blob.opened(version, data, BLOB_VERSION, CHECKSUM_SINCE) as body:
            head, rest = blob.split(body)
            totals = blob.unpack_totals(head, ChannelTotals)
            if version == 1:
                return cls(settings, totals, version_1.channel_state(rest, totals))
            if version <= _OLD_VERSION:
                return cls(settings, totals, version_4.channel_state(rest))
            state = msgspec.msgpack.decode(rest, type=ChannelState)
            if version < _SENDERS_SINCE:
                state.health.last_attributed_ms = state.health.last_content_ms
            return cls(settings, totals, state)

    def to_blob(self) -> bytes:
        """Encode the whole view, totals first, in version `BLOB_VERSION`."""
        return blob.pack(self.totals, self._model.pack())

    def apply(
        self, digests: Iterable[ChannelDigest], clock_ms: int
    ) -> list[ChannelEvent]:
        """Process the next frames, then set the clock to `clock_ms`, Unix ms.

        The result has definite acknowledgements, then incidents, then minutes. If the
        channel is forgotten in this call, all events of the forgotten channel come
        before those of the new channel.
        """
        frames = [frames_of(digest) for digest in digests]
        if len(frames) == 1:
            return self.follow(frames[0], clock_ms)
        return self.follow(heapq.merge(*frames, key=attrgetter("order")), clock_ms)

    def follow(self, frames: Iterable[SeenFrame], clock_ms: int) -> list[ChannelEvent]:
        """Process frames that are already in order; see `apply`."""
        events: list[ChannelEvent] = []
        frame: SeenFrame
        for frame in frames:
            events += self._end_of_silence(frame.clock_ms)
            self._advance(frame.clock_ms)
            if self._model.apply(frame):
                self._minutes.might_change(self._state.clock_ms)
        events += self._end_of_silence(clock_ms)
        self._advance(clock_ms)
        self._model.summarise()
        return [*events, *self._drain()]

    @property
    def model(self) -> ChannelModel:
        """The model; a trace reads from it the facts that the journal does not have."""
        return self._model

    def forget(self) -> list[ChannelEvent]:
        """Forget the channel; see `View.forget`.

        The result has the channel's last figures, stored for the minute before the
        current minute; see `Minutes.finish`.
        """
        if self.is_forgotten:
            return []
        self._model.summarise()
        self._minutes.finish(self._state.clock_ms)
        last = replace(self.totals, **_MOMENTARY)
        events = [*self._drain(), Forgotten(blob.pack_totals(last))]
        self._begin(ChannelTotals(), ChannelState())
        return events

    @property
    def is_forgotten(self) -> bool:
        """Whether no frame has been seen since the view was created or forgotten."""
        return self.totals.first_event_ms is None

    @property
    def next_deadline_ms(self) -> int | None:
        """When `apply` is due even without frames, Unix ms; None if never."""
        clock_ms = self._state.clock_ms
        pending = (
            *self._model.pending_ms(),
            self._model.next_change_ms(clock_ms),
            self._minutes.deadline_ms(clock_ms),
            self._silent_until_ms,
        )
        known = (ms for ms in pending if ms is not None and clock_ms <= ms < NEVER)
        return min(known, default=None)

    @property
    def _silent_until_ms(self) -> int | None:
        heard_ms = self._state.heard_ms
        if heard_ms is None:
            heard_ms = self.totals.last_event_ms
        if heard_ms is None or not self._settings.forget_ms:
            return None
        return heard_ms + self._settings.forget_ms

    def _end_of_silence(self, clock_ms: int) -> list[ChannelEvent]:
        """If the channel was silent for longer than `forget_ms`, forget the channel."""
        until_ms = self._silent_until_ms
        if until_ms is None or clock_ms <= until_ms:
            return []
        self._advance(until_ms)
        return self.forget()

    def _drain(self) -> list[ChannelEvent]:
        return [*self._model.drain(), *self._minutes.take()]

    def _advance(self, clock_ms: int) -> None:
        """Set the clock to a later time.

        For each minute that ended by then, emit the figures if they changed.
        """
        clock_ms = max(clock_ms, self._state.clock_ms)
        while True:
            end_ms: int = self._next_minute_end_ms()
            if end_ms > clock_ms:
                break
            self._model.pass_to(end_ms)
            self._model.summarise()
            self._minutes.check(self._model.next_change_ms(end_ms))
        self._model.pass_to(clock_ms)

    def _next_minute_end_ms(self) -> int:
        # If an earlier release wrote the state, `next_moment` may be before the clock.
        moment_ms: int = max(self._model.next_moment(), self._state.clock_ms)
        self._minutes.might_change(moment_ms)
        return self._minutes.check_ms
