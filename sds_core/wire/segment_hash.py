"""The hash that identifies a payload in all of its segments."""

from __future__ import annotations

from Crypto.Hash import keccak

_BITS = 256


def payload_hash(payload: bytes) -> bytes:
    """Return Keccak-256 of a payload, 32 bytes.

    That is Keccak as it was before SHA-3, which pads differently: `hashlib` has only
    SHA-3.
    """
    return keccak.new(digest_bits=_BITS, data=payload).digest()
