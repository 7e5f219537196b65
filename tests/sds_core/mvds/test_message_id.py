"""The id of a message."""

from __future__ import annotations

import dataclasses

import pytest

from sds_core.mvds.payload import Message, Metadata, message_id

GROUP = bytes.fromhex("01020304") + bytes(28)

VECTORS = [
    (
        Message(GROUP, 0, b""),
        "7751c423a010b76d475a39ab1a1328ea6a13e9d30b168f97ed7997d8ee66e99d",
    ),
    (
        Message(GROUP, 1571659349, b"message 1"),
        "d383d60991545de2905d18b7a6da8a0e00a904ad100daa1e704947d445059410",
    ),
    (
        Message(b"\x01", 1571659349, b"\xaa\xbb\xcc"),
        "520de702808c2c0d7139ff898580351aa9ff7a0ed45e1d8616542bac7d9003d8",
    ),
    (
        Message(GROUP, -1, b"x"),
        "733936d013bf57a77bbff6b87c5c1f6d5beedd18ba3f7c3000d2a5fd81d44e2d",
    ),
]
"""Ids that the function of the deployed Go nodes gives; none are published."""


@pytest.mark.rule("mvds-payload-id")
@pytest.mark.parametrize(("message", "expected"), VECTORS)
def test_id_is_that_of_deployed_nodes(message: Message, expected: str) -> None:
    """SHA-256 with the timestamp in 8 bytes, little-endian, also a negative one."""
    assert message_id(message).hex() == expected


def test_metadata_does_not_change_the_id() -> None:
    """A node that does not know metadata acknowledges the same id."""
    message, _ = VECTORS[1]
    with_metadata = dataclasses.replace(message, metadata=Metadata((bytes(32),), True))
    assert message_id(with_metadata) == message_id(message)


def test_messages_of_groups_of_different_length_can_have_one_id() -> None:
    """Nothing separates group and timestamp; ids of groups should have one length."""
    long_group = Message(b"\x01" + bytes(8), 0, b"")
    short_group = Message(b"\x01", 0, bytes(8))
    assert message_id(long_group) == message_id(short_group)
