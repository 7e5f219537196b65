"""Which messages are mirrored, and under which key."""

from __future__ import annotations

import pytest

from sds_core.mirror.selection import Selection, Skip, channel_of
from sds_core.waku import RELIABLE_CHANNEL_META, WakuMessage
from sds_core.wire import Dialect, encode
from tests.support.frames import FrameFactory

FRAME = encode(FrameFactory("town").content("m", "alice"))
NIM_FRAME = encode(FrameFactory("town", Dialect.NIM).content("m", "alice"))
SEGMENT = bytes.fromhex("0a20" + bytes(range(32)).hex() + "18022203aabbcc")
TOPIC = "/app/1/town/proto"


def skipped(
    payload: bytes, topics: frozenset[str] = frozenset(), meta: bytes = b""
) -> Skip | None:
    """Why a message on `TOPIC` is left out."""
    message = WakuMessage(payload, TOPIC, meta=meta)
    return Selection(topics).skipped(message, channel_of(payload))


@pytest.mark.parametrize(
    ("payload", "meta", "expected"),
    [
        (FRAME, b"", None),
        (NIM_FRAME, b"", None),
        (b"something else", b"", Skip.NOT_SDS),
        (b"", b"", Skip.NOT_SDS),
        (b"something else", RELIABLE_CHANNEL_META, None),
        (b"something else", b"RELIABLE-CHANNEL-API/2", Skip.NOT_SDS),
        (SEGMENT, b"", Skip.SEGMENT),
        (SEGMENT, RELIABLE_CHANNEL_META, None),
    ],
)
def test_whole_shard_selects_only_sds(
    payload: bytes, meta: bytes, expected: Skip | None
) -> None:
    """Messages marked as SDS count even if they cannot be decoded."""
    assert skipped(payload, meta=meta) is expected


@pytest.mark.parametrize("payload", [FRAME, b"something else", SEGMENT, b""])
def test_requested_content_topics_select_every_message(payload: bytes) -> None:
    """Undecodable ones become dead letters; other topics are ignored."""
    assert skipped(payload, frozenset({TOPIC, "/app/1/other/proto"})) is None
    assert skipped(payload, frozenset({"/app/1/other/proto"})) is Skip.OTHER_TOPIC


def test_the_key_is_the_channel_inside_the_frame() -> None:
    """In both dialects; None if the payload is no frame."""
    assert channel_of(FRAME) == channel_of(NIM_FRAME) == "town"
    assert channel_of(SEGMENT) is None
    assert channel_of(b"") is None
