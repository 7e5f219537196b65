"""Encryption of frames: what it hides, and what it refuses."""

from __future__ import annotations

from random import Random

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from sds_core.reliable_channel.encryption import (
    KEY_BYTES,
    NONCE_BYTES,
    BadNonce,
    ChaChaEncryption,
    Encryption,
    EncryptionError,
    Undecryptable,
)
from sds_core.reliable_channel.errors import ReliableChannelError
from sds_core.wire import UndecodableFrame, decode
from sds_core.wire.segment_header import read_segment_header
from tests.support.properties import CAREFUL

KEY = bytes(range(KEY_BYTES))


def encryption(
    key: bytes = KEY, channel_id: str = "tea", seed: int = 1
) -> ChaChaEncryption:
    """One with nonces by a seed."""
    return ChaChaEncryption(key, channel_id, Random(seed).randbytes)


@CAREFUL
@given(st.binary(max_size=300))
@pytest.mark.rule("rc-security-encryption")
def test_participants_with_the_key_read_each_other(frame: bytes) -> None:
    """Each has nonces of its own."""
    alice: Encryption = encryption(seed=1)
    bob: Encryption = encryption(seed=2)
    ciphertext = alice.encrypt(frame)
    assert bob.decrypt(ciphertext) == frame
    assert len(ciphertext) == len(frame) + ChaChaEncryption.overhead_bytes
    assert frame not in ciphertext or len(frame) < 4


def test_ciphertext_is_that_of_rfc_8439() -> None:
    """Two fixed bytes, nonce, then cipher and tag, authenticated with the channel."""
    nonce = b"\x07" * NONCE_BYTES
    made = ChaChaEncryption(KEY, "té", lambda length: nonce[:length]).encrypt(b"frame")
    expected = ChaCha20Poly1305(KEY).encrypt(nonce, b"frame", b"\0\1" + "té".encode())
    assert made == b"\0\1" + nonce + expected


def test_equal_frames_have_different_ciphertexts() -> None:
    """A nonce is drawn for each."""
    cipher = encryption()
    assert cipher.encrypt(b"frame") != cipher.encrypt(b"frame")


@pytest.mark.parametrize(
    "reader",
    [encryption(bytes(KEY_BYTES)), encryption(channel_id="coffee")],
    ids=["key", "channel"],
)
def test_another_key_or_channel_reads_nothing(reader: ChaChaEncryption) -> None:
    """One key may serve several channels."""
    with pytest.raises(Undecryptable, match="the sender used another key or channel"):
        reader.decrypt(encryption().encrypt(b"frame"))


@CAREFUL
@given(
    frame=st.binary(max_size=40), at=st.integers(0, 10_000), flip=st.integers(1, 255)
)
def test_any_changed_byte_is_found(frame: bytes, at: int, flip: int) -> None:
    """Opening, nonce, cipher or tag."""
    changed = bytearray(encryption().encrypt(frame))
    changed[at % len(changed)] ^= flip
    with pytest.raises(Undecryptable) as caught:
        encryption().decrypt(bytes(changed))
    assert caught.value.actual_bytes == len(changed)


@CAREFUL
@given(st.binary(max_size=60))
def test_other_bytes_raise_the_declared_error(content: bytes) -> None:
    """Anyone can publish on a content topic."""
    for value in (content, b"\0\1" + content):
        with pytest.raises(EncryptionError):
            encryption().decrypt(value)


@pytest.mark.parametrize("length", range(ChaChaEncryption.overhead_bytes))
def test_a_message_that_is_cut_off_is_refused(length: int) -> None:
    """Down to nothing."""
    with pytest.raises(Undecryptable, match=f"^{length} bytes cannot be decrypted"):
        encryption().decrypt(encryption().encrypt(b"")[:length])


@CAREFUL
@given(st.binary(max_size=300), st.integers(0, 2**32))
def test_nobody_takes_a_ciphertext_for_a_frame_or_segment(
    frame: bytes, seed: int
) -> None:
    """So that a monitor counts it as unreadable."""
    ciphertext = encryption(seed=seed).encrypt(frame)
    with pytest.raises(UndecodableFrame):
        decode(ciphertext)
    assert read_segment_header(ciphertext) is None


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    """The error names both lengths."""
    with pytest.raises(ValueError, match=f"{length} bytes, but must have 32"):
        encryption(bytes(length))


@pytest.mark.parametrize("length", [0, 11, 13])
def test_a_broken_source_of_nonces_encrypts_nothing(length: int) -> None:
    """A constant one cannot be noticed; a wrong length can."""
    broken = ChaChaEncryption(KEY, "tea", lambda _: bytes(length))
    with pytest.raises(BadNonce, match=f"{length} bytes, but must have 12"):
        broken.encrypt(b"frame")


def test_errors_are_those_of_the_channel() -> None:
    """An application catches one base."""
    error = Undecryptable(5, "the ciphertext is too short")
    assert isinstance(error, ReliableChannelError)
    assert isinstance(error, ValueError)
    assert str(error) == "5 bytes cannot be decrypted: the ciphertext is too short"
