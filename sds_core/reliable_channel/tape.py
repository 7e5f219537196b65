"""Records ciphertexts for a journal, so that a replay gives the same ciphertexts.

Each encryption draws a new nonce. If a replay encrypted again, it would compute other
Waku hashes than those of the messages that were sent. Causal histories need the hashes
of the sent messages as retrieval hints.

An encryption that failed is recorded as empty bytes, because no ciphertext is empty.
The replay fails at the same frame, so each other frame gets its own ciphertext.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from sds_core.reliable_channel.encryption import Encryption, EncryptionError

_FAILED = b""


class TapedEncryption:
    """Encrypts with a cipher, or replays the ciphertexts of a previous run.

    If `encryption` is None, `encrypt` and `decrypt` change nothing.
    """

    def __init__(self, encryption: Encryption | None) -> None:
        self._encryption = encryption
        self._recorded: list[bytes] = []
        self._replayed: deque[bytes] = deque()

    def replay(self, ciphertexts: Iterable[bytes]) -> None:
        """Make the next encryptions return these ciphertexts."""
        self._replayed = deque(ciphertexts)

    def take_recorded(self) -> list[bytes]:
        """Return the ciphertexts since the last call, for the journal.

        For each encryption that failed, the list has empty bytes.
        """
        recorded, self._recorded = self._recorded, []
        return recorded

    def encrypt(self, plaintext: bytes) -> bytes:
        """Encrypt a frame or a segment; see `Encryption`.

        Raises:
            EncryptionError: The bytes cannot be encrypted, or the replayed encryption
                failed.
        """
        if self._encryption is None:
            return plaintext
        if self._replayed:
            return self._replay_next()
        try:
            ciphertext = self._encryption.encrypt(plaintext)
        except EncryptionError:
            self._recorded.append(_FAILED)
            raise
        self._recorded.append(ciphertext)
        return ciphertext

    def _replay_next(self) -> bytes:
        ciphertext = self._replayed.popleft()
        if ciphertext == _FAILED:
            message = "the encryption failed before the restart"
            raise EncryptionError(message)
        return ciphertext

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Decrypt a frame or a segment; see `Encryption`."""
        if self._encryption is None:
            return ciphertext
        return self._encryption.decrypt(ciphertext)
