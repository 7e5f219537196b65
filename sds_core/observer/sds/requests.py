"""Repair requests by message id, and their encoded form."""

from __future__ import annotations

from typing import cast

import msgspec

from sds_core.native import Int64Rows, native
from sds_core.observer.table import SIGNED, UNSIGNED, Codec, PackedTable, Table

REMEMBERED = 32
"""Maximum number of requesters, and of request times, that an entry stores.

More are not needed to check the times of requests and responses.
"""


class Request(msgspec.Struct, array_like=True, gc=False):
    """Repair requests for one message id.

    States store the fields by position, so append a new field at the end.

    Attributes:
        first_ms: Event time of the first request of the newest episode, Unix ms.
        latest_ms: The channel's clock at the latest request, Unix ms.
        window_ms: Length of the repair window. A broadcast of the message within this
            time after the latest request answers the request.
        is_open: Whether the newest episode has no answer and has not expired.
        requesters: The first `REMEMBERED` participants that requested the message.
        requests_ms: Event times of the latest requests for the id, at most `REMEMBERED`
            of them.
    """

    first_ms: int
    latest_ms: int
    window_ms: int
    is_open: bool = True
    requesters: list[int] = []
    requests_ms: list[int] = []

    @property
    def end_ms(self) -> int:
        """End of the latest request's repair window in the channel's clock, Unix ms."""
        return self.latest_ms + self.window_ms


_LATEST, _WINDOW, _IS_OPEN = range(1, 4)
_PACKINGS = SIGNED, UNSIGNED, UNSIGNED
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Request)


@native
class _RequestCodec(Codec[Request]):
    def store(self, entry: object, cells: Int64Rows, row: int) -> bytes:
        request = cast("Request", entry)
        cells[_LATEST, row] = request.latest_ms
        cells[_WINDOW, row] = request.window_ms
        cells[_IS_OPEN, row] = request.is_open
        return _ENCODER.encode(request)

    def load(self, key: int, cells: Int64Rows, row: int, rest: bytes) -> Request:
        return _DECODER.decode(rest)


@native
class RequestTable(Table[Request]):
    """Repair requests by fingerprint of the message id, in order of `latest_ms`."""

    def __init__(self, packed: PackedTable) -> None:
        super().__init__(_RequestCodec(_PACKINGS, _LATEST), packed)

    def open_until(self) -> list[tuple[int, int]]:
        """`Request.end_ms` and key of each entry whose newest episode is open."""
        self.flush()
        found: list[tuple[int, int]] = []
        row: int
        for row in range(self._rows):
            if self._cells[_IS_OPEN, row]:
                end_ms = self._cells[_LATEST, row] + self._cells[_WINDOW, row]
                found.append((end_ms, self._cells[0, row]))
        return found

    def is_open(self, key: int) -> bool:
        """Whether the newest episode of an entry is open; the entry must exist."""
        row: int = self._row(key)
        if row < 0:
            return self._added[key].is_open
        request = self._objects[row]
        return self._cells[_IS_OPEN, row] != 0 if request is None else request.is_open

    @property
    def oldest_ms(self) -> int | None:
        """The smallest `Request.latest_ms`; None if no request is remembered."""
        if self._first < self._rows:
            return self._cells[_LATEST, self._first]
        for one in self._added.values():
            return one.latest_ms
        return None
