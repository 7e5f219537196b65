"""The stateful operator: blob in, view, blob out.

One call per key that has rows in the batch, or whose deadline the watermark has
passed. State is ``(version, blob)``; its schema never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec
import pandas as pd
from pyspark.sql.streaming.state import GroupState

from sds_core.observer import blob
from sds_core.observer.dead_letter_view import DeadLetterDigest, DeadLetterView
from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.digest import ChannelDigest
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.tap_view import TapDigest, TapView
from streaming.keys import KeyKind, split_key

STATE_SCHEMA = "version int, blob binary"
OUTPUT_SCHEMA = "key string, totals binary, events binary"


class View(Protocol):
    """What every kind of key has: pure, absolute, versioned."""

    totals: Any

    @property
    def is_forgotten(self) -> bool:
        """Whether nothing is known any more, so that nothing need be kept."""

    def apply(self, digests: Iterable[Any], clock_ms: int) -> Sequence[Any]:
        """Take digests, then move the clock; returns what leaves the job once."""

    def to_blob(self) -> bytes:
        """The whole view, totals first."""

    @property
    def next_deadline_ms(self) -> int | None:
        """When to call although nothing arrives."""


VIEWS: dict[KeyKind, tuple[type[Any], type[Any]]] = {
    KeyKind.CHANNEL: (ChannelView, ChannelDigest),
    KeyKind.TAP: (TapView, TapDigest),
    KeyKind.DEAD_LETTERS: (DeadLetterView, DeadLetterDigest),
}
"""View and digest of each kind of key."""

Fold = Callable[[Any, Iterator[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]


def make_fold(
    settings: ObserverSettings = DEFAULTS, with_details: bool = False
) -> Fold:
    """The function for ``applyInPandasWithState``.

    Args:
        settings: Of the observer model.
        with_details: Whether each definite acknowledgement leaves the job.
    """

    def fold(
        key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        kind, _ = split_key(key[0])
        if kind is KeyKind.CLOCK:
            _, clock_ms = _rows(frames)
            yield _output(key[0], b"", clock_ms)
            return
        view_type, digest_type = VIEWS[kind]
        view = _restored(view_type, state, settings)
        packed, clock_ms = _rows(frames)
        if state.hasTimedOut:
            # The watermark is a millisecond behind the T that moved it.
            clock_ms = state.getCurrentWatermarkMs() + 1
        events = view.apply(
            [msgspec.msgpack.decode(data, type=digest_type) for data in packed],
            clock_ms,
        )
        data = view.to_blob()
        if view.is_forgotten:
            # Its empty totals still leave, and take it off the board.
            state.remove()
        else:
            state.update((blob.VERSION, data))
            _set_timeout(view, state)
        if not with_details:
            events = [
                one for one in events if not isinstance(one, DefiniteAcknowledgement)
            ]
        yield _output(key[0], blob.totals_part(data), events)

    return fold


def _output(key: str, totals: bytes, events: object) -> pd.DataFrame:
    """A row of `OUTPUT_SCHEMA`; of the clock's key, `events` is T, Unix ms."""
    packed = msgspec.msgpack.encode(events)
    return pd.DataFrame({"key": [key], "totals": [totals], "events": [packed]})


def _restored(
    view_type: type[Any], state: GroupState, settings: ObserverSettings
) -> View:
    view: View
    if state.exists:
        version, data = state.get
        view = view_type.from_blob(version, bytes(data), settings)
    else:
        view = view_type(settings)
    return view


def _rows(frames: Iterable[pd.DataFrame]) -> tuple[list[bytes], int]:
    """All digests of a group, and the admission time that their rows carry."""
    packed: list[bytes] = []
    clock_ms = 0
    for frame in frames:
        if len(frame):
            packed.extend(frame["digest"])
            clock_ms = max(clock_ms, frame["event_time"].max().value // 1_000_000)
    return packed, clock_ms


def _set_timeout(view: View, state: GroupState) -> None:
    deadline_ms = view.next_deadline_ms
    if deadline_ms is None:
        return
    # Spark fires when the watermark T - 1 has passed the timeout: with a timeout of
    # D - 1 just when T > D. It takes none that is before the watermark, nor before
    # 1970, which record times may be.
    state.setTimeoutTimestamp(max(deadline_ms - 1, state.getCurrentWatermarkMs(), 1))
