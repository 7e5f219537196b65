"""Results and limits of a synchronisation, and the interface of both sides."""

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
        nodes: Maximum number of nodes and messages that are accepted from a peer in
            total. Each node or message needs less than 500 bytes of memory, so the
            default limits memory to 500 MB.
        records_bytes: Maximum total size of whole records that one call accepts.
    """

    frame_bytes: int = 16 * 1024 * 1024
    nodes: int = 1_000_000
    records_bytes: int = 256 * 1024 * 1024


DEFAULT_LIMITS = Limits()


class Allowance:
    """Counts what a peer has sent."""

    def __init__(self, limits: Limits) -> None:
        self._left = self._limit = limits.nodes

    def use(self, number: int) -> None:
        """Count nodes or messages.

        Raises:
            LimitExceeded: The maximum was exceeded.
        """
        self._left -= number
        if self._left < 0:
            text = f"the peer sent more than {self._limit} nodes and messages"
            raise LimitExceeded(text)


class Outcome(NamedTuple):
    """Messages that only client or server has, in order of time and hash."""

    only_here: Sequence[Item]
    only_there: Sequence[Item]


class Client(Protocol):
    """The requesting side. A client does no I/O: it takes and returns frames."""

    @property
    def outcome(self) -> Outcome | None:
        """The result; None until the synchronisation ends."""

    def start(self) -> Sequence[Frame]:
        """Return the first frames of a connection; call it for each new connection."""

    def receive(self, frame: Frame) -> Sequence[Frame]:
        """Process a frame of the server; returns the frames to send.

        Raises:
            SyncError: The server does not follow the protocol, or refuses.
        """


class Server(Protocol):
    """The answering side, for one connection."""

    def receive(self, frame: Frame) -> Iterable[Frame]:
        """Process a frame of the client; returns the answer.

        Raises:
            SyncError: The client does not follow the protocol.
        """
