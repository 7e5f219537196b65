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
"""Newest version of blobs that do not store messages as a table."""

_SENDERS_SINCE = 7
"""First version of blobs that stores when content last named its sender."""

_MOMENTARY = {"evidence": None, "participant_table": b"", "suspects": None}
"""Values that replace momentary figures in minutes and in the totals of forgotten
views."""

ChannelEvent = DefiniteAcknowledgement | Incident | ChannelMinute | Forgotten
"""The types of events that `ChannelView.apply` returns."""


@native
class ChannelView:
    """Tracks what a passive observer can conclude from the frames of one channel.

    After a silence of `forget_ms`, a channel is forgotten. A later frame then starts a
    new channel with the same name.
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
        """Process the next frames, then set the clock, Unix ms.

        The result has definite acknowledgements, then incidents, then minutes. If the
        channel was forgotten, all events from before it was forgotten come first.
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
        """The model, from which a trace reads facts that are not in the notes."""
        return self._model

    def forget(self) -> list[ChannelEvent]:
        """Forget the channel; see `View.forget`.

        The result contains the last figures as the figures of the previous minute; see
        `Minutes.finish`.
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
        """Deadline after which `apply` is due even without frames; None if never."""
        clock_ms = self._state.clock_ms
        pending = (
            *self._model.pending_ms(),
            self._model.next_gauge_change_ms(clock_ms),
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
        """If a frame ends a long silence, forget the channel before this frame."""
        until_ms = self._silent_until_ms
        if until_ms is None or clock_ms <= until_ms:
            return []
        self._advance(until_ms)
        return self.forget()

    def _drain(self) -> list[ChannelEvent]:
        return [*self._model.drain(), *self._minutes.take()]

    def _advance(self, clock_ms: int) -> None:
        """Set the clock to a later time, and check each minute that ended by then."""
        clock_ms = max(clock_ms, self._state.clock_ms)
        while True:
            end_ms: int = self._next_minute_end_ms()
            if end_ms > clock_ms:
                break
            self._model.pass_to(end_ms)
            self._model.summarise()
            self._minutes.check(self._model.next_gauge_change_ms(end_ms))
        self._model.pass_to(clock_ms)

    def _next_minute_end_ms(self) -> int:
        # In a state from an earlier release, `next_moment` may be before the clock.
        moment_ms: int = max(self._model.next_moment(), self._state.clock_ms)
        self._minutes.might_change(moment_ms)
        return self._minutes.check_ms
