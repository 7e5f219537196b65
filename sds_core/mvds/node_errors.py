"""Errors that a node raises if its application calls it incorrectly.

    NodeError
    ├── UnknownGroup (a LookupError)
    ├── BadGroupId (a ValueError)
    ├── BadPeerId (a ValueError)
    ├── MessageExists (a ValueError)
    └── MessageTooLarge (a ValueError)

If the node refuses a record from a peer, it raises no error, but returns a `Refused`
event.
"""

from __future__ import annotations


class NodeError(Exception):
    """Base of the errors that a node raises."""


class UnknownGroup(NodeError, LookupError):
    """The node is not in the group."""

    def __init__(self, group_id: bytes) -> None:
        super().__init__(f"the node is not in group {group_id.hex()!r:.80}")
        self.group_id = group_id


class BadGroupId(NodeError, ValueError):
    """The length of the group's id differs from `Options.group_id_bytes`."""

    def __init__(self, group_id: bytes, expected_bytes: int) -> None:
        super().__init__(
            f"the id of group {group_id.hex()!r:.80} has {len(group_id)} bytes, but "
            f"must have {expected_bytes}"
        )
        self.group_id = group_id
        self.expected_bytes = expected_bytes


class BadPeerId(NodeError, ValueError):
    """A peer has the id of the node itself."""

    def __init__(self, peer: bytes) -> None:
        super().__init__(f"peer {peer.hex()!r:.80} is the node itself")
        self.peer = peer


class MessageExists(NodeError, ValueError):
    """The group has a message with this timestamp and body, and thus with this id."""

    def __init__(self, message_id: bytes) -> None:
        super().__init__(
            f"the group already has message {message_id.hex()}; give the new message "
            "another timestamp or body"
        )
        self.message_id = message_id


class MessageTooLarge(NodeError, ValueError):
    """The message is longer than `Options.max_message_bytes`."""

    def __init__(self, actual_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"the message has {actual_bytes} bytes, but at most {limit_bytes} are "
            "allowed; split the body"
        )
        self.actual_bytes = actual_bytes
        self.limit_bytes = limit_bytes
