"""Results and limits of a synchronisation, and the interfaces of both sides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from sds_core.prolly.errors import LimitExceeded
from sds_core.prolly.frames import Frame
from sds_core.prolly.item import Item


class Limits(NamedTuple):
    """Limits of one synchronisation.

    Attributes:
        frame_bytes: Maximum length of a frame that is read or sent.
        nodes: Maximum total number of nodes and messages that a peer may send. Each
            node or message needs less than 500 bytes of memory, so the default limits
            memory to 500 MB.
        records_bytes: Maximum total size of the complete records that one call
            requests.
    """

    frame_bytes: int = 16 * 1024 * 1024
    nodes: int = 1_000_000
    records_bytes: int = 256 * 1024 * 1024


DEFAULT_LIMITS = Limits()


class Allowance:
    """Counts the nodes and messages that a peer has sent."""

    def __init__(self, limits: Limits) -> None:
        self._left = self._limit = limits.nodes

    def use(self, number: int) -> None:
        """Count further nodes or messages.

        Raises:
            LimitExceeded: The peer has sent more than the limit.
        """
        self._left -= number
        if self._left < 0:
            text = f"the peer sent more than {self._limit} nodes and messages"
            raise LimitExceeded(text)


class Outcome(NamedTuple):
    """Messages that only the client or only the server has, in order of their keys."""

    only_here: Sequence[Item]
    only_there: Sequence[Item]


class Client(Protocol):
    """The requesting side. It does no I/O, but takes and returns frames."""

    @property
    def outcome(self) -> Outcome | None:
        """The result; None until the synchronisation ends."""

    def start(self) -> Sequence[Frame]:
        """Return the first frames of a connection. Call `start` for each connection."""

    def receive(self, frame: Frame) -> Sequence[Frame]:
        """Process a frame from the server; return the frames to send.

        Raises:
            SyncError: The server does not follow the protocol, or refuses the request.
        """


class Server(Protocol):
    """The answering side, for one connection."""

    def receive(self, frame: Frame) -> Iterable[Frame]:
        """Process a frame from the client; return the answer.

        Raises:
            SyncError: The client does not follow the protocol.
        """
