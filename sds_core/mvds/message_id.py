"""The id of a message.

Source: 2/MVDS, "Payloads". It leaves open how the timestamp is hashed: the deployed
nodes take 8 bytes, little-endian (vacp2p/mvds protobuf/messageid.go).
"""

from __future__ import annotations

from hashlib import sha256

from sds_core.mvds.payload import Message


def message_id(message: Message) -> bytes:
    """Return the id of a message, 32 bytes.

    Group, timestamp and body are hashed without separators: two messages of different
    groups can have the same id if the group ids differ in length. Metadata is not part
    of the id.
    """
    # Two's complement, as Go converts a negative time.
    timestamp = message.timestamp.to_bytes(8, "little", signed=True)
    return sha256(b"MESSAGE_ID" + message.group_id + timestamp + message.body).digest()
