"""Repair requests by message id, and their packed form in the state."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sds_core.observer.table import SIGNED, UNSIGNED, PackedTable, Table

REMEMBERED = 32
"""Participants and requests remembered for one id, at most: enough to check times."""


class Request(msgspec.Struct, array_like=True):
    """Repair requests for one message id. Stored in the state, by position.

    Attributes:
        first_ms: Event time of the first request of the newest episode, Unix ms.
        latest_ms: The channel's clock at the latest request, Unix ms.
        window_ms: Time after the latest request in which a response answers it.
        is_open: Whether the newest episode has no answer and has not expired.
        requesters: The first `REMEMBERED` participants that requested it.
        requests_ms: Event times of its latest requests, at most `REMEMBERED`.
    """

    first_ms: int
    latest_ms: int
    window_ms: int
    is_open: bool = True
    requesters: list[int] = []
    requests_ms: list[int] = []

    @property
    def end_ms(self) -> int:
        """The channel's clock until which a response answers it, Unix ms."""
        return self.latest_ms + self.window_ms


_LATEST, _WINDOW, _IS_OPEN = range(3)
"""Columns of the table."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Request)


class _RequestCodec:
    """Repeats in columns what is asked of many requests at once."""

    packings = (SIGNED, UNSIGNED, UNSIGNED)

    def split(self, entry: Request) -> tuple[tuple[int, ...], bytes]:
        """See `Codec`."""
        columns = (entry.latest_ms, entry.window_ms, entry.is_open)
        return columns, _ENCODER.encode(entry)

    def join(self, key: int, values: Sequence[int], rest: bytes) -> Request:
        """See `Codec`."""
        return _DECODER.decode(rest)


class RequestTable(Table[Request]):
    """Requests by fingerprint of the id, in order of the latest request.

    Its time never changes: who requests an id again replaces the entry.
    """

    def __init__(self, packed: PackedTable) -> None:
        super().__init__(_RequestCodec(), packed)

    def open_until(self) -> list[tuple[int, int]]:
        """Key and `Request.end_ms` of the requests whose episode is open."""
        self.flush()
        rows = self.column(_IS_OPEN) != 0
        ends = self.column(_LATEST)[rows] + self.column(_WINDOW)[rows].astype("i8")
        return list(zip(self.keys[rows].tolist(), ends.tolist(), strict=True))

    @property
    def oldest_ms(self) -> int | None:
        """Least `Request.latest_ms`; None if there is no request."""
        row = self.first_row
        if row is not None:
            return int(self.column(_LATEST)[row])
        return next((one.latest_ms for one in self.added), None)
