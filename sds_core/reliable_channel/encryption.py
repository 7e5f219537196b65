"""Interface for the encryption of frames or segments, and a cipher with a shared key.

All participants must be able to decrypt all messages (RELIABLE-CHANNEL-API,
"Security/Privacy Considerations").
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from sds_core.reliable_channel.errors import ReliableChannelError

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12

_TAG_BYTES = 16

_OPENING = b"\0\1"
"""The first two bytes of every ciphertext.

No protobuf message begins with a zero byte, so a ciphertext cannot be mistaken for a
frame or a segment. The second byte is the version of the ciphertext's format.
"""


class EncryptionScope(StrEnum):
    """Which parts of a message are encrypted.

    FRAME: The whole frame is encrypted, so that only its length is visible. CONTENT:
    Each segment is encrypted before SDS puts it into a frame, as in logos-delivery
    (channels/reliable_channel.nim). In this case, the frame's ids, causal history and
    filter stay readable, so participants without the key can store and repair messages.
    """

    FRAME = "frame"
    CONTENT = "content"


class EncryptionError(ReliableChannelError):
    """Base class of all encryption errors."""


class Undecryptable(EncryptionError, ValueError):
    """The bytes were not encrypted with this key for this channel, or were changed."""

    def __init__(self, actual_bytes: int, detail: str) -> None:
        super().__init__(f"{actual_bytes} bytes cannot be decrypted: {detail}")
        self.actual_bytes = actual_bytes
        self.detail = detail


class BadNonce(EncryptionError):
    """The source of nonces returned a wrong number of bytes."""

    def __init__(self, actual_bytes: int) -> None:
        super().__init__(
            f"a nonce has {actual_bytes} bytes, but must have {NONCE_BYTES}"
        )
        self.actual_bytes = actual_bytes


class Encryption(Protocol):
    """Interface of a cipher that the participants of a channel share."""

    def encrypt(self, plaintext: bytes, /) -> bytes:
        """Return the ciphertext of a frame or segment.

        Raises:
            EncryptionError: The plaintext cannot be encrypted.
        """

    def decrypt(self, ciphertext: bytes, /) -> bytes:
        """Return the frame or segment that a ciphertext contains.

        Raises:
            EncryptionError: The ciphertext was not encrypted for this channel, or was
                changed.
        """


class ChaChaEncryption:
    """Encrypts all frames or segments with one key by ChaCha20-Poly1305 (RFC 8439).

    A ciphertext consists of two fixed bytes, the nonce, the encrypted plaintext, and a
    tag. Nonces are random. If fewer than 2**32 messages are encrypted with a key, the
    probability that two of them have the same nonce is below 2**-32.

    Args:
        key: Shared secret, 32 bytes.
        channel_id: Id of the channel. The tag of each ciphertext authenticates this id,
            so that a message cannot be replayed in another channel with the same key.
        nonces: Function that takes a number, and returns this number of random bytes;
            `os.urandom` except in tests. If two messages have the same nonce, an
            attacker can read both.

    Raises:
        ValueError: The key does not have 32 bytes.
    """

    overhead_bytes: Final = len(_OPENING) + NONCE_BYTES + _TAG_BYTES
    """Number of bytes by which a ciphertext is longer than its plaintext."""

    def __init__(
        self, key: bytes, channel_id: str, nonces: Callable[[int], bytes]
    ) -> None:
        if len(key) != KEY_BYTES:
            message = f"the key has {len(key)} bytes, but must have {KEY_BYTES}"
            raise ValueError(message)
        self._cipher = ChaCha20Poly1305(key)
        self._context = _OPENING + channel_id.encode()
        self._nonces = nonces

    def encrypt(self, plaintext: bytes, /) -> bytes:
        """Encrypt a frame or segment; see `Encryption`.

        Raises:
            BadNonce: The source of nonces returned a wrong number of bytes.
        """
        nonce = self._nonces(NONCE_BYTES)
        if len(nonce) != NONCE_BYTES:
            raise BadNonce(len(nonce))
        return _OPENING + nonce + self._cipher.encrypt(nonce, plaintext, self._context)

    def decrypt(self, ciphertext: bytes, /) -> bytes:
        """Decrypt a frame or segment; see `Encryption`.

        Raises:
            Undecryptable: The ciphertext was not encrypted with this key for this
                channel, or was changed.
        """
        actual_bytes = len(ciphertext)
        if not ciphertext.startswith(_OPENING):
            raise Undecryptable(actual_bytes, "the ciphertext has an unknown format")
        if actual_bytes < self.overhead_bytes:
            raise Undecryptable(actual_bytes, "the ciphertext is too short")
        body = len(_OPENING) + NONCE_BYTES
        nonce = ciphertext[len(_OPENING) : body]
        try:
            return self._cipher.decrypt(nonce, ciphertext[body:], self._context)
        except InvalidTag as error:
            detail = (
                "the sender used another key or channel, or the ciphertext was changed"
            )
            raise Undecryptable(actual_bytes, detail) from error
