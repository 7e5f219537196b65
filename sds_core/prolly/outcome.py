"""Results and limits of a synchronisation, and interfaces of client and server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from sds_core.prolly.errors import LimitExceeded
from sds_core.prolly.frames import Frame
from sds_core.prolly.item import Item


class Limits(NamedTuple):
    """Limits of one synchronisation.

    Attributes:
        frame_bytes: Maximum length of a frame in either direction, bytes.
        nodes: Maximum number of nodes and messages, in total, that a peer may send. A
            node or message needs less than 500 bytes of memory. By default, they
            therefore need at most 500 MB in total.
        records_bytes: Maximum total size of the complete records that a client fetches
            in one call, bytes.
    """

    frame_bytes: int = 16 * 1024 * 1024
    nodes: int = 1_000_000
    records_bytes: int = 256 * 1024 * 1024


DEFAULT_LIMITS = Limits()


class Allowance:
    """Counts the nodes and messages that a peer has sent, up to `Limits.nodes`."""

    def __init__(self, limits: Limits) -> None:
        self._left = self._limit = limits.nodes

    def use(self, number: int) -> None:
        """Count `number` further nodes or messages.

        Raises:
            LimitExceeded: The peer has sent more than `Limits.nodes`.
        """
        self._left -= number
        if self._left < 0:
            text = f"the peer sent more than {self._limit} nodes and messages"
            raise LimitExceeded(text)


class Outcome(NamedTuple):
    """Differences that a synchronisation found, in order of the messages' keys.

    Attributes:
        only_here: Messages that only the client has.
        only_there: Messages that only the server has.
    """

    only_here: Sequence[Item]
    only_there: Sequence[Item]


class Client(Protocol):
    """The side that sends requests. Its caller sends and receives the frames."""

    @property
    def outcome(self) -> Outcome | None:
        """The differences; None until the synchronisation ends."""

    def start(self) -> Sequence[Frame]:
        """Return the first frames of a connection. Call `start` for each connection."""

    def receive(self, frame: Frame) -> Sequence[Frame]:
        """Process a frame from the server; return the frames to send.

        Raises:
            SyncError: The server does not follow the protocol, or refuses the request.
        """


class Server(Protocol):
    """The side that answers the requests of one connection."""

    def receive(self, frame: Frame) -> Iterable[Frame]:
        """Process a frame from the client; return the frames of the answer.

        Raises:
            SyncError: The client does not follow the protocol.
        """
