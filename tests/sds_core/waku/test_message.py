"""The deterministic hash of a Waku message."""

from __future__ import annotations

import msgspec
import pytest

from sds_core.waku import WakuMessage


# Vectors of 14/WAKU2-MESSAGE, as tested by logos-delivery in
# tests/waku_core/test_message_digest.nim.
@pytest.mark.parametrize(
    ("payload", "meta", "expected"),
    [
        (
            "010203045445535405060708",
            "",
            "cccab07fed94181c83937c8ca8340c9108492b7ede354a6d95421ad34141fd37",
        ),
        (
            "010203045445535405060708",
            "73757065722d736563726574",
            "b9b4852f9d8c489846e8bfc6c5ca6a1a8d460a40d28832a966e029eb39619199",
        ),
        (
            "010203045445535405060708",
            bytes(range(64)).hex(),
            "653460d04f66c5b11814d235152f4f246e6f03ef80a305a825913636fbafd0ba",
        ),
        (
            "",
            "73757065722d736563726574",
            "0f6448cc23b2db6c696aa6ab4b693eff4cf3549ff346fe1dbeb281697396a09f",
        ),
    ],
)
def test_hash_is_that_of_the_published_vectors(
    payload: str, meta: str, expected: str
) -> None:
    """It equals a Waku node's hash bit for bit."""
    message = WakuMessage(
        bytes.fromhex(payload),
        "/waku/2/default-content/proto",
        1_681_964_442_000_000_000,
        meta=bytes.fromhex(meta),
    )
    assert message.hash_on("/waku/2/rs/0/0").hex() == expected


def test_version_and_ephemeral_are_not_in_the_hash() -> None:
    """The same message sent again as ephemeral has the same hash."""
    plain = WakuMessage(b"x", "/a/1/b/proto", 7)
    marked = msgspec.structs.replace(plain, version=1, ephemeral=True)
    assert plain.hash_on("/waku/2/rs/0/0") == marked.hash_on("/waku/2/rs/0/0")


def test_time_before_1970_is_hashed_in_twos_complement() -> None:
    """A sender may send it; all 64 bits count."""
    before, wrapped = (
        WakuMessage(b"x", "/a/1/b/proto", time_ns) for time_ns in (-1, 2**64 - 1)
    )
    assert before.hash_on("t") == wrapped.hash_on("t")
    assert before.hash_on("t") != WakuMessage(b"x", "/a/1/b/proto", 1).hash_on("t")
