"""What a synchronisation found, and the shape of both sides of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from sds_core.prolly.errors import LimitExceeded
from sds_core.prolly.frames import Frame
from sds_core.prolly.item import Item


class Limits(NamedTuple):
    """Limits of one synchronisation.

    Attributes:
        frame_bytes: Longest frame that is read or sent. Requests and answers are
            divided so that they stay below it.
        nodes: Nodes and messages that are accepted from a peer in all. Each needs
            less than 500 bytes, so the default allows 500 MB; a synchronisation of
            400,000 messages against an empty tree needs it.
        records_bytes: Whole records that one call accepts. A record of the monitor has
            at most 4 MiB, so fifty always fit.
    """

    frame_bytes: int = 16 * 1024 * 1024
    nodes: int = 1_000_000
    records_bytes: int = 256 * 1024 * 1024


DEFAULT_LIMITS = Limits()


class Allowance:
    """Counts what a peer has sent.

    Args:
        limits: Has the greatest number of nodes.
    """

    def __init__(self, limits: Limits) -> None:
        self._left = self._limit = limits.nodes

    def use(self, number: int) -> None:
        """Count nodes or messages.

        Raises:
            LimitExceeded: There were too many by now.
        """
        self._left -= number
        if self._left < 0:
            text = f"more than {self._limit} nodes and messages were sent"
            raise LimitExceeded(text)


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
