"""Records ciphertexts for a journal, so that a replay gives the same ciphertexts.

Each encryption draws a new nonce. If a replay encrypted again, it would compute other
Waku hashes than those of the messages that were sent. Causal histories need the hashes
of the sent messages as retrieval hints.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from sds_core.reliable_channel.encryption import Encryption


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
        """Return the ciphertexts made since the last call, for the journal."""
        recorded, self._recorded = self._recorded, []
        return recorded

    def encrypt(self, plaintext: bytes) -> bytes:
        """Encrypt a frame or a segment; see `Encryption`."""
        if self._encryption is None:
            return plaintext
        if self._replayed:
            return self._replayed.popleft()
        ciphertext = self._encryption.encrypt(plaintext)
        self._recorded.append(ciphertext)
        return ciphertext

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Decrypt a frame or a segment; see `Encryption`."""
        if self._encryption is None:
            return ciphertext
        return self._encryption.decrypt(ciphertext)
