"""The messages that each participant has received, and their encoded form."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from sds_core.native import native
from sds_core.observer.columns import pack_set, unpack_set

WATCHED = 4
"""Maximum number of ids that are watched in a participant's filter.

If a newer filter lacks a watched id, the filter has rolled over. The number of set bits
does not show every roll-over, because it may have increased again after the roll-over.

Three of the watched ids are the first that the filter held, because a filter drops the
oldest ids first. The last watched id is the newest that the filter held. If a
participant restarts with an old state, its filter lacks this id.
"""


@native
@dataclass(slots=True)
class Receiver:
    """What one participant has received according to its frames.

    Messages are stored as their orders.

    Attributes:
        checked_to: Number of the channel's messages at the participant's latest first
            copy. Messages with this order or a greater one are not yet checked.
        missing: The waiting messages that the participant lacks. Each has the event
            time of the participant's first frame that showed that it lacks the message.
        lost: The waiting messages that count as lost to the participant.
        watched: At most `WATCHED` messages that the participant's newest filter held.
        returns: Event times of the participant's latest two returns, the latest first;
            0 for a return that has not happened. A return is a first copy that ends a
            silence longer than the delivery deadline.
        failed: Number of deliveries to the participant that count as lost, without
            retracted losses.
        first, bitmap: The waiting messages in encoded form, see `PackedReceiver`;
            invalid if `unpacked` is not None.
        unpacked: The waiting messages in decoded form. They are decoded on first use,
            because a batch uses only a few receivers; None before that.
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
        """Orders of the messages that the participant is not yet known to have.

        All these orders are below `checked_to`.
        """
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
        waiting: Bitmap of the waiting messages' orders, from the order `first` on.
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
