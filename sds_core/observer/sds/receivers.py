"""What single participants have received, and its packed form in the state."""

from __future__ import annotations

import msgspec

from sds_core.observer.columns import pack_set, unpack_set

WATCHED = 4
"""Number of ids by which a roll-over is detected even if the fill increases.

The first three ids that were held, which a filter drops first, and the newest, which is
missing after a participant restarts with an old state."""


class Receiver(msgspec.Struct):
    """What one participant has received, as far as its frames show.

    Messages are given by their order.

    Attributes:
        checked_to: Messages from this one on were sent after its latest first copy.
        waiting: Earlier messages that it is not known to have.
        missing: The waiting messages that it lacked, with the event time of the first
            frame that showed this.
        lost: The waiting messages that count as lost to it.
        watched: Messages that its newest filter held, at most `WATCHED`.
    """

    checked_to: int = 0
    waiting: set[int] = set()
    missing: dict[int, int] = {}
    lost: set[int] = set()
    watched: list[int] = []


class PackedReceiver(msgspec.Struct, array_like=True):
    """Packed form of a `Receiver`.

    Attributes:
        checked_to, missing, lost, watched: See `Receiver`.
        first: Least order of the waiting messages.
        waiting: Bitmap of the waiting messages, from `first` on.
    """

    checked_to: int
    first: int
    waiting: bytes
    missing: dict[int, int]
    lost: list[int]
    watched: list[int]

    @classmethod
    def of(cls, receiver: Receiver) -> PackedReceiver:
        """The packed form of a receiver."""
        return cls(
            receiver.checked_to,
            *pack_set(receiver.waiting),
            receiver.missing,
            sorted(receiver.lost),
            receiver.watched,
        )

    def unpacked(self) -> Receiver:
        """The receiver."""
        waiting = unpack_set(self.first, self.waiting)
        return Receiver(
            self.checked_to, waiting, self.missing, set(self.lost), self.watched
        )
