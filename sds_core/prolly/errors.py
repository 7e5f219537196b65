"""Errors of a synchronisation.

    SyncError
    ├── BadFrame            the bytes are no frame, or no message of their kind
    │   └── BrokenFrame     the stream ended within a frame
    ├── UnexpectedMessage   a message of the wrong kind, or at the wrong time
    ├── BadNode             a node that the tree of an honest peer cannot have
    ├── WrongHash           the peer's nodes or messages do not match its hash
    ├── LimitExceeded       more than the limits allow
    ├── Unauthorised        the peer sent no token that this side knows
    └── PeerRefused         the peer does not answer, and reports the reason

If a synchronisation ends with an error, the trees of this side stay unchanged.
"""

from __future__ import annotations


class SyncError(Exception):
    """The synchronisation cannot continue with this peer."""


class BadFrame(SyncError):
    """The bytes are not a frame, or not a valid message of the frame's kind."""


class BrokenFrame(BadFrame):
    """The stream ended within a frame."""


class UnexpectedMessage(SyncError):
    """A message has the wrong type, or the protocol does not allow it at this point."""


class BadNode(SyncError):
    """A node is in a wrong place, has a wrong key or node hash, or does not exist."""


class WrongHash(SyncError):
    """A Merkle hash from the peer does not match the nodes or messages below it."""


class LimitExceeded(SyncError):
    """The peer sends or requests more than the limits allow."""


class Unauthorised(SyncError):
    """The peer sent no token, or a token that this side does not accept."""

    def __init__(self) -> None:
        super().__init__(
            "the other mirror accepts only a valid token: set SDS_MONITOR_PEER_TOKEN"
        )


class PeerRefused(SyncError):
    """The peer refused to answer."""
