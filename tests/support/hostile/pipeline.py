"""The whole way of a record in one process: digest, state opened, applied and closed.

Views lie packed between two batches, as in the job's state store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from sds_core.observer import blob
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.record import RawRecord
from sds_core.observer.settings import DEFAULTS
from streaming.chunk import Chunk, DigestRow

_KINDS = kinds_of(PROTOCOLS)


class Pipeline:
    """Handles batches of one partition.

    Attributes:
        blobs: State of each view, by key.
        deadlines: When each view must be applied next, Unix ms.
    """

    def __init__(self) -> None:
        self._chunk = Chunk(0, 0)
        self.blobs: dict[str, bytes] = {}
        self.deadlines: dict[str, int] = {}

    def take(self, records: Iterable[RawRecord]) -> None:
        """Handle a batch, and the deadlines that it passes."""
        for record in records:
            self._chunk.add(record, 1 << 62)
        self._apply(self._chunk.take_rows(), self._chunk.clock_ms)

    def wait(self, seconds: int) -> None:
        """Let time pass without records; there is a batch in each second."""
        for second in range(seconds):
            self._apply((), self._chunk.clock_ms + 1_000 * second)

    def _apply(self, rows: Iterable[DigestRow], clock_ms: int) -> None:
        digests: defaultdict[str, list[bytes]] = defaultdict(list)
        for row in rows:
            digests[row.key].append(row.digest)
        due = [key for key, at_ms in self.deadlines.items() if at_ms < clock_ms]
        for key in [*digests, *(key for key in due if key not in digests)]:
            self._bring_up(key, digests.get(key, ()), clock_ms)

    def _bring_up(self, key: str, packed: Iterable[bytes], clock_ms: int) -> None:
        kind, _ = _KINDS.split(key)
        data = self.blobs.get(key)
        if data is None:
            view = kind.view(DEFAULTS)
        else:
            view = kind.view.from_blob(kind.blob_version, data, DEFAULTS)
        digests = [msgspec.msgpack.decode(one, type=kind.digest) for one in packed]
        events = view.apply(digests, clock_ms)
        msgspec.msgpack.encode(list(events))
        data = self.blobs[key] = view.to_blob()
        blob.totals_part(data)
        deadline_ms = view.next_deadline_ms
        if deadline_ms is None:
            self.deadlines.pop(key, None)
        else:
            self.deadlines[key] = max(deadline_ms, clock_ms)
