"""Digests in the form in which the job sends them to the views."""

from __future__ import annotations

import msgspec

from sds_core.observer.sds.digest import ChannelDigest


def packed(digest: ChannelDigest) -> bytes:
    """The digest as the reader sends it."""
    return msgspec.msgpack.encode(digest)


def unpacked(data: bytes) -> ChannelDigest:
    """The digest as the view receives it."""
    return msgspec.msgpack.decode(data, type=ChannelDigest)
