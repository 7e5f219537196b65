"""The stateful operator: decodes a view, updates it, and encodes it.

Spark calls the operator once for each key with rows in the batch, and for each key
whose deadline the watermark has passed. Spark stores the state of a view as
``(version, blob)``; this schema never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from pyspark.sql.streaming.state import GroupState

from sds_core.observer import blob
from sds_core.observer.kinds import AnyKind, AnyProtocol, Outlet, View
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from streaming.chunk import CLOCK_KEY, FORGET, REVIEW
from streaming.damage import DamagedCheckpoint, state_of
from streaming.failure import hand_over

STATE_SCHEMA = "version int, blob binary"
OUTPUT_SCHEMA = "key string, totals binary, events binary, clock_ms bigint"
"""Schema of the operator's output: a row for each updated view, and the clock row.

In the clock row, only `key` and `clock_ms` are set; `clock_ms` is the admission time T
of the batch, Unix ms. In the row of a forgotten view, `totals` is null.
"""


class OutputRow(NamedTuple):
    """A row of `OUTPUT_SCHEMA`."""

    key: str
    totals: bytes | None = None
    events: bytes | None = None
    clock_ms: int | None = None


_OUTPUT_COLUMNS = pd.Index(OutputRow._fields)


class Fold:
    """The function for ``applyInPandasWithState``.

    If `with_details` is False, events for `Outlet.DETAILS` are dropped.
    """

    def __init__(
        self,
        settings: ObserverSettings = DEFAULTS,
        with_details: bool = False,
        protocols: Iterable[AnyProtocol] = PROTOCOLS,
    ) -> None:
        self._settings = settings
        self._with_details = with_details
        self._kinds = kinds_of(protocols).without_figures()

    def __call__(
        self, key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        """Yield one output row; Spark calls this method for each key."""
        packed, clock_ms = _rows(frames)
        # With an object array, this takes a quarter of the time, because pandas does
        # not detect types.
        row = np.empty((1, len(_OUTPUT_COLUMNS)), dtype=object)
        row[0] = self.row(key[0], packed, clock_ms, state)
        yield pd.DataFrame(row, columns=_OUTPUT_COLUMNS)

    @hand_over
    def row(
        self, key: str, packed: Sequence[bytes], clock_ms: int, state: GroupState
    ) -> OutputRow:
        """Update the view of `key` with its digests and requests in the batch.

        `packed` has these digests and requests. `clock_ms` is the admission time T of
        the batch, Unix ms. If Spark calls this method because the view's deadline has
        passed, T is computed from the watermark instead of `clock_ms`.

        Raises:
            DamagedCheckpoint: The state is damaged.
            sds_core.observer.blob.UnknownBlobVersion: A newer release wrote the state.
            sds_core.observer.kinds.UnknownKind: No registered kind has this key.
        """
        if key == CLOCK_KEY:
            return OutputRow(key, clock_ms=clock_ms)
        kind, _ = self._kinds.split(key)
        view = _restored(kind, key, state, self._settings)
        if state.hasTimedOut:
            # The watermark is the newest T minus 1 ms, which is the delay of
            # `withWatermark`.
            clock_ms = state.getCurrentWatermarkMs() + 1
        last_events = view.forget() if FORGET in packed else ()
        digests = [
            msgspec.msgpack.decode(data, type=kind.digest)
            for data in packed
            if data not in (FORGET, REVIEW)
        ]
        events: Sequence[Any] = [*last_events, *view.apply(digests, clock_ms)]
        totals = None
        if view.is_forgotten:
            state.remove()
        else:
            data = view.to_blob()
            totals = _row_totals(kind, view, data)
            state.update((kind.blob_version, data))
            _set_timeout(view, state)
        if not self._with_details:
            outlets = kind.outlets
            events = [e for e in events if outlets[type(e)] is not Outlet.DETAILS]
        return OutputRow(key, totals, msgspec.msgpack.encode(list(events)))


def _restored(
    kind: AnyKind, key: str, state: GroupState, settings: ObserverSettings
) -> View[Any, Any, Any]:
    if not state.exists:
        return kind.view(settings)
    version, data = state.get
    try:
        return kind.view.from_blob(version, bytes(data), settings)
    except blob.DamagedBlob as error:
        raise DamagedCheckpoint(state_of(key), str(error)) from error


def _row_totals(kind: AnyKind, view: View[Any, Any, Any], data: bytes) -> bytes:
    """Return a view's encoded totals; if its kind tracks them, only changed groups."""
    if kind.grouping is None or kind.grouping.changed is None:
        return blob.totals_part(data)
    return blob.pack_totals(kind.grouping.changed(view))


def _rows(frames: Iterable[pd.DataFrame]) -> tuple[list[bytes], int]:
    packed: list[bytes] = []
    clock_ms = 0
    for frame in frames:
        if len(frame):
            packed.extend(frame["digest"])
            # NumPy computes the maximum in a third of the time that pandas needs.
            times = frame["event_time"].to_numpy("datetime64[ms]")
            clock_ms = max(clock_ms, int(times.max().astype(np.int64)))
    return packed, clock_ms


def _set_timeout(view: View[Any, Any, Any], state: GroupState) -> None:
    deadline_ms = view.next_deadline_ms
    if deadline_ms is None:
        return
    # Spark calls the operator when the watermark, T - 1, exceeds the timeout. For a
    # deadline D, the timeout is D - 1, so Spark calls the operator when T > D. Spark
    # rejects a timeout before the watermark or before 1970, but a deadline may be
    # earlier, because record times may be earlier.
    state.setTimeoutTimestamp(max(deadline_ms - 1, state.getCurrentWatermarkMs(), 1))
