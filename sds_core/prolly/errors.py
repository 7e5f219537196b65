"""Errors of a synchronisation.

    SyncError
    ├── BadFrame            the bytes are no frame, or no message of their kind
    │   └── BrokenFrame     the stream ended within a frame
    ├── UnexpectedMessage   a message of the wrong kind, or at the wrong time
    ├── BadNode             a node that the tree of an honest peer cannot have
    ├── WrongHash           what the peer sent does not have the hash that it named
    ├── LimitExceeded       more than the limits allow
    ├── Unauthorised        the peer sent no token that this side knows
    └── PeerRefused         the peer does not answer, and reports the reason

After each error, the state is as before the synchronisation.
"""

from __future__ import annotations


class SyncError(Exception):
    """The synchronisation cannot continue with this peer."""


class BadFrame(SyncError):
    """The bytes are no frame, or no message of the frame's kind."""


class BrokenFrame(BadFrame):
    """The stream ended within a frame."""


class UnexpectedMessage(SyncError):
    """The message has the wrong kind, or comes at the wrong time."""


class BadNode(SyncError):
    """A node is in a wrong place, or its node hash is wrong."""


class WrongHash(SyncError):
    """A node's Merkle hash does not match the nodes below it."""


class LimitExceeded(SyncError):
    """The peer sends or requests more than the limits allow."""


class Unauthorised(SyncError):
    """The peer did not send a token that this side knows."""

    def __init__(self) -> None:
        super().__init__(
            "the other mirror accepts only a valid token: set SDS_MONITOR_PEER_TOKEN"
        )


class PeerRefused(SyncError):
    """The peer refused to answer."""
