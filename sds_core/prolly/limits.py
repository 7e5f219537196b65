"""How much a peer can make the other side hold."""

from __future__ import annotations

from typing import NamedTuple

from sds_core.prolly.errors import LimitExceeded


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
