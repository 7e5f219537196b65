"""What a synchronisation found, and the shape of both sides of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from sds_core.prolly.frames import Frame
from sds_core.prolly.item import Item


class Outcome(NamedTuple):
    """How the messages of client and server differ.

    Attributes:
        only_here: The server lacks them; in order of time and hash.
        only_there: The client lacks them; likewise.
    """

    only_here: Sequence[Item]
    only_there: Sequence[Item]


class Client(Protocol):
    """The side that asks. It does no I/O: frames come in and go out."""

    @property
    def outcome(self) -> Outcome | None:
        """The result; None until the synchronisation ends."""

    def start(self) -> Sequence[Frame]:
        """Return the first frames for a new connection, also after a broken one.

        What was learned on the old connection is used if the server still has the same
        tree.
        """

    def receive(self, frame: Frame) -> Sequence[Frame]:
        """Take a frame of the server; returns the frames to send.

        Raises:
            SyncError: The server does not follow the protocol, or refuses.
        """


class Server(Protocol):
    """The side that answers, for one connection."""

    def receive(self, frame: Frame) -> Iterable[Frame]:
        """Take a frame of the client; returns the answer.

        Raises:
            SyncError: The client does not follow the protocol.
        """
