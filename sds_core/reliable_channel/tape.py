"""Records ciphertexts for a journal, so that a replay gives the same ciphertexts.

Each encryption draws a new nonce. After a restart, a retry must have the hash that
others store as a retrieval hint, so a replay uses the recorded ciphertexts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from sds_core.reliable_channel.encryption import Encryption


class TapedEncryption:
    """Encrypts with a cipher, or replays the ciphertexts of a previous run.

    Without a cipher, frames are not changed.
    """

    def __init__(self, encryption: Encryption | None) -> None:
        self._encryption = encryption
        self._recorded: list[bytes] = []
        self._replayed: deque[bytes] = deque()

    def replay(self, ciphertexts: Iterable[bytes]) -> None:
        """Make the next encryptions return these ciphertexts."""
        self._replayed = deque(ciphertexts)

    def take_recorded(self) -> list[bytes]:
        """Return the ciphertexts since the last call; a journal stores them."""
        recorded, self._recorded = self._recorded, []
        return recorded

    def encrypt(self, plaintext: bytes) -> bytes:
        """Encrypt a frame; see `Encryption`."""
        if self._encryption is None:
            return plaintext
        if self._replayed:
            return self._replayed.popleft()
        ciphertext = self._encryption.encrypt(plaintext)
        self._recorded.append(ciphertext)
        return ciphertext

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Decrypt a frame; see `Encryption`."""
        if self._encryption is None:
            return ciphertext
        return self._encryption.decrypt(ciphertext)
