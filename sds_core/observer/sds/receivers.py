"""The messages that each participant has received, and their encoded form."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from sds_core.native import native
from sds_core.observer.columns import pack_set, unpack_set

WATCHED = 4
"""Number of watched ids of a filter; their loss shows a roll-over.

The number of set bits does not show every roll-over, because it may have increased
since. The first three watched ids are the oldest, which a filter drops first. The last
is the newest. If a participant restarts with an old state, its filter lacks the newest
id."""


@native
@dataclass(slots=True)
class Receiver:
    """What one participant has received according to its frames.

    Each message is given as its order.

    Attributes:
        checked_to: Order of the first message after the participant's latest first
            copy.
        missing: The waiting messages that the participant lacks, with the event time of
            the first frame that showed the lack.
        lost: The waiting messages that count as lost to the participant.
        watched: At most `WATCHED` messages that the participant's newest filter held.
        returns: Event times of the latest two returns, the latest first; 0 for a
            missing return. A return is a first copy that ends a silence longer than the
            deadline.
        failed: Number of deliveries to the participant that count as lost and are not
            retracted.
        first, bitmap: The waiting messages in encoded form, see `PackedReceiver`;
            invalid if `unpacked` is set.
        unpacked: The waiting messages; None before their first use, because a batch
            concerns few receivers.
    """

    checked_to: int = 0
    missing: dict[int, int] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    watched: list[int] = field(default_factory=list)
    returns: tuple[int, int] = (0, 0)
    delivered: int = 0
    failed: int = 0
    first: int = 0
    bitmap: bytes = b""
    unpacked: set[int] | None = None

    @property
    def waiting(self) -> set[int]:
        """Messages that the participant may lack, as orders below `checked_to`."""
        if self.unpacked is None:
            self.unpacked = unpack_set(self.first, self.bitmap)
        return self.unpacked

    @property
    def waiting_count(self) -> int:
        """Number of waiting messages."""
        if self.unpacked is None:
            return int.from_bytes(self.bitmap).bit_count()
        return len(self.unpacked)


class PackedReceiver(msgspec.Struct, array_like=True):
    """Encoded form of a `Receiver`.

    Attributes:
        checked_to, missing, lost, watched, returns, delivered, failed: See `Receiver`.
        first: The smallest order of the waiting messages.
        waiting: Bitmap of the waiting messages, from `first` on.
    """

    checked_to: int
    first: int
    waiting: bytes
    missing: dict[int, int]
    lost: list[int]
    watched: list[int]
    returns: tuple[int, int] = (0, 0)
    delivered: int = 0
    failed: int = 0

    @classmethod
    def of(cls, receiver: Receiver) -> PackedReceiver:
        """The encoded form of a receiver."""
        first, bitmap = receiver.first, receiver.bitmap
        if receiver.unpacked is not None:
            first, bitmap = pack_set(receiver.unpacked)
        return cls(
            receiver.checked_to,
            first,
            bitmap,
            receiver.missing,
            sorted(receiver.lost),
            receiver.watched,
            receiver.returns,
            receiver.delivered,
            receiver.failed,
        )

    def unpacked(self) -> Receiver:
        """The receiver."""
        return Receiver(
            self.checked_to,
            self.missing,
            set(self.lost),
            self.watched,
            self.returns,
            self.delivered,
            self.failed,
            self.first,
            self.waiting,
        )
