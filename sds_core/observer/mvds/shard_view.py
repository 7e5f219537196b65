"""The view of one shard of message ids."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from sds_core.native import native
from sds_core.observer import blob
from sds_core.observer.journal import Journal
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.mvds.digest import (
    SeenPayload,
    SeenPeer,
    ShardDigest,
    heard_in,
    payloads_of,
)
from sds_core.observer.mvds.group_events import GroupEvent, MvdsMinute, ended_minutes
from sds_core.observer.mvds.groups import Groups
from sds_core.observer.mvds.shard_model import ShardModel
from sds_core.observer.mvds.shard_state import BLOB_VERSION, ShardState
from sds_core.observer.mvds.totals import ShardTotals
from sds_core.observer.mvds.window import STEP_MS, Rule
from sds_core.observer.settings import DEFAULTS, ObserverSettings


@native
class ShardView:
    """Tracks what a passive observer can conclude about one shard of message ids.

    The view drops old messages, but keeps the totals of their groups.
    """

    totals: ShardTotals
    _settings: ObserverSettings
    _journal: Journal | None
    _active_ms: int
    _state: ShardState
    _groups: Groups
    _model: ShardModel
    _changed: set[str]

    def __init__(
        self,
        settings: ObserverSettings = DEFAULTS,
        totals: ShardTotals | None = None,
        state: ShardState | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._settings = settings
        self._journal = journal
        # How long after the latest payload a figure or a verdict may still change, even
        # if no further payload arrives.
        self._active_ms = max(
            settings.verdict_window_ms + settings.ack_deadline_ms + STEP_MS,
            settings.warm_up_ms,
        )
        self._begin(totals or ShardTotals(), state or ShardState())

    def _begin(self, totals: ShardTotals, state: ShardState) -> None:
        self.totals = totals
        self._state = state
        self._groups = Groups(totals, Rule.of(self._settings))
        self._model = ShardModel(self._settings, self._groups, state, self._journal)
        self._changed = set()

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> ShardView:
        """Restore the view that `to_blob` encoded; see `View.from_blob`."""
        with blob.opened(version, data, BLOB_VERSION, 1) as body:
            return cls(settings, *blob.unpack(body, ShardTotals, ShardState))

    def to_blob(self) -> bytes:
        """Encode the whole view, totals first, in version `BLOB_VERSION`."""
        return blob.pack(self.totals, self._model.pack())

    def apply(self, digests: Iterable[ShardDigest], clock_ms: int) -> list[GroupEvent]:
        """Process the next payloads, then set the clock, Unix ms.

        The result has the minutes that ended, each with changed figures of a group,
        then the incidents that began or changed.
        """
        return self.follow(in_order(digests), clock_ms)

    def follow(
        self, seen_in_order: Iterable[SeenPeer | SeenPayload], clock_ms: int
    ) -> list[GroupEvent]:
        """Process peers and payloads that `in_order` sorted; see `apply`."""
        events: list[GroupEvent] = []
        self._changed.clear()
        for seen in seen_in_order:
            events += self._advance(seen.clock_ms)
            if isinstance(seen, SeenPayload):
                self._model.apply(seen)
            else:
                self._model.heard(seen)
        events += self._advance(clock_ms)
        self._changed.update(self._groups.pack(self._state.clock_ms))
        self.totals.clock_ms = self._state.clock_ms
        return [*events, *self._model.drain()]

    def forget(self) -> list[GroupEvent]:
        """Drop all ids and groups; see `View.forget`."""
        self._begin(ShardTotals(), ShardState())
        return []

    @property
    def changed(self) -> ShardTotals:
        """The totals, with only the groups that the last `apply` may have changed."""
        groups = self.totals.groups
        return ShardTotals(
            self.totals.clock_ms, {name: groups[name] for name in self._changed}
        )

    @property
    def is_forgotten(self) -> bool:
        """Whether the view has seen no payload since it was created or forgotten."""
        return self._state.heard_ms is None

    @property
    def next_deadline_ms(self) -> int | None:
        """When the clock passes this time, `apply` is due even without payloads.

        Unix ms; None if `apply` is due only for payloads.
        """
        end_ms = self._next_minute_end_ms()
        deadline_ms = self._model.next_deadline_ms
        due = [ms for ms in (deadline_ms, end_ms and end_ms - 1) if ms is not None]
        return min(due, default=None)

    def _advance(self, clock_ms: int) -> list[MvdsMinute]:
        ended: list[MvdsMinute] = []
        clock_ms = max(clock_ms, self._state.clock_ms)
        while (end_ms := self._next_minute_end_ms()) is not None and end_ms <= clock_ms:
            self._model.pass_to(end_ms)
            # The verdict of any group may have changed without a payload.
            self._changed.update(self._groups.names())
            ended += ended_minutes(self._groups, end_ms, self._state.emitted)
        self._model.pass_to(clock_ms)
        return ended

    def _next_minute_end_ms(self) -> int | None:
        """End of the current minute, Unix ms; None if no figure can change by then."""
        state = self._state
        if state.heard_ms is None:
            return None
        end_ms = state.clock_ms - state.clock_ms % MINUTE_MS + MINUTE_MS
        is_active = end_ms - MINUTE_MS <= state.heard_ms + self._active_ms
        return end_ms if is_active else None


def in_order(digests: Iterable[ShardDigest]) -> list[SeenPeer | SeenPayload]:
    """Return peers and payloads of digests in order of clock, partition and offset."""
    seen: list[SeenPeer | SeenPayload] = []
    for digest in digests:
        seen += heard_in(digest)
        seen += payloads_of(digest)
    seen.sort(key=attrgetter("order"))
    return seen
