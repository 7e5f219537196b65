"""Bytes, participants, epochs and filters (docs/figures.md, 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sds_core.wire import Dialect
from tests.support.frames import START_MS
from tests.support.reference.filters import Filters, rate, shape
from tests.support.reference.seen import Seen

EPOCH_MS = 600_000
BUDGET = 100
"""Messages of a participant in an epoch."""

PARTS = {
    Dialect.SPEC: {20: "content", 11: "history", 12: "bloom", 13: "repair"},
    Dialect.NIM: {5: "content", 3: "history", 6: "bloom", 13: "repair"},
}
"""Field numbers of the parts of a frame; every other field is of "other"."""


def bytes_by_part(dialect: Dialect, value: bytes) -> Counter[str]:
    """The lengths of a frame's top-level fields (tag, length, payload) by part."""
    sizes: Counter[str] = Counter()
    end = 0
    while end < len(value):
        begin = end
        tag, end = _varint(value, end)
        match tag & 7:
            case 0:
                _, end = _varint(value, end)
            case 1:
                end += 8
            case 2:
                length, end = _varint(value, end)
                end += length
            case 5:
                end += 4
            case wire_type:
                message = f"wire type {wire_type} at {begin}"
                raise ValueError(message)
        sizes[PARTS[dialect].get(tag >> 3, "other")] += end - begin
    assert end == len(value), "a field is longer than the frame"
    return sizes


def _varint(value: bytes, place: int) -> tuple[int, int]:
    """The number at a place, and the place behind it."""
    number = 0
    for count, byte in enumerate(value[place : place + 10]):
        number |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return number, place + count + 1
    message = f"no number at {place}"
    raise ValueError(message)


class Capacity(Filters):
    """Adds sizes and numbers of frames, participants and filters."""

    def bytes(self) -> Counter[str]:
        """Lengths of all broadcasts, by part."""
        sizes: Counter[str] = Counter()
        for one in self.broadcasts:
            sizes += bytes_by_part(one.dialect, one.value())
        return sizes

    def participants_lately(self) -> set[str]:
        """Who was seen lately."""
        edge = self.end - 600_000
        return {one.sender for one in self.first_copies if one.at >= edge} - {""}

    def epoch_messages_max(self, retries: Iterable[Seen], epochs_ago: int) -> int:
        """The most messages of one participant in an epoch, with its retries."""
        number = (START_MS + self.end) // EPOCH_MS - epochs_ago
        sent = Counter(
            one.sender
            for one in (*self.first_copies, *retries)
            if one.sender and (START_MS + one.clock) // EPOCH_MS == number
        )
        return max(sent.values(), default=0)

    def bloom_worst(self) -> tuple[int, int, int] | None:
        """Bits set, size and hashes of the fullest of the senders' latest filters."""
        senders = {one.sender for one in self.first_copies}
        latest = [newest[-1] for sender in senders if (newest := self.newest(sender))]
        lately = [one for one in latest if one.at >= self.end - 600_000]
        if not lately:
            return None
        # Of equal ones the larger.
        worst = max(lately, key=lambda one: (rate(one), shape(one)[1]))
        return worst.bits_set(), *shape(worst)[1:]
