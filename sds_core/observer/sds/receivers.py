"""What single participants have received, and its packed form in the state."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from sds_core.native import native
from sds_core.observer.columns import pack_set, unpack_set

WATCHED = 4
"""Number of ids by which a roll-over is detected even if the fill increases.

The first three ids that were held, which a filter drops first, and the newest, which is
missing after a participant restarts with an old state."""


@native
@dataclass(slots=True)
class Receiver:
    """What one participant has received, as far as its frames show.

    Messages are given by their order.

    Attributes:
        checked_to: Messages from this one on were sent after its latest first copy.
        waiting: Earlier messages that it is not known to have.
        missing: The waiting messages that it lacked, with the event time of the first
            frame that showed this.
        lost: The waiting messages that count as lost to it.
        watched: Messages that its newest filter held, at most `WATCHED`.
        returns: Event times of its latest two first copies after a silence longer than
            the deadline, the latest first; 0 if there is none.
        delivered: Number of deliveries to it that succeeded.
        failed: Number of deliveries to it that count as lost and are not retracted.
    """

    checked_to: int = 0
    waiting: set[int] = field(default_factory=set)
    missing: dict[int, int] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    watched: list[int] = field(default_factory=list)
    returns: tuple[int, int] = (0, 0)
    delivered: int = 0
    failed: int = 0


class PackedReceiver(msgspec.Struct, array_like=True):
    """Packed form of a `Receiver`.

    Attributes:
        checked_to, missing, lost, watched, returns, delivered, failed: See `Receiver`.
        first: Least order of the waiting messages.
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
        """The packed form of a receiver."""
        return cls(
            receiver.checked_to,
            *pack_set(receiver.waiting),
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
            unpack_set(self.first, self.waiting),
            self.missing,
            set(self.lost),
            self.watched,
            self.returns,
            self.delivered,
            self.failed,
        )
