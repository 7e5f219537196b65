"""Decoders of a reliable channel: reassembly of segments, decryption, rate limits."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from sds_core.reliable_channel.encryption import (
    KEY_BYTES,
    ChaChaEncryption,
    EncryptionError,
)
from sds_core.reliable_channel.errors import StateError
from sds_core.reliable_channel.rate_limit import RateLimit, RateLimitOptions, Urgency
from sds_core.reliable_channel.segmentation import (
    Outcome,
    Reassembler,
    SegmentationError,
    Segmenter,
    payload_hash,
)
from tests.support.frames import START_MS
from tests.support.fuzz.errors import check_text
from tests.support.fuzz.mutation import changed_bytes, changed_protobuf
from tests.support.fuzz.target import Target
from tests.support.reliable_channel.payloads import EVERY_LAYOUT, SMALL, payload_of

_PAYLOADS = [
    (replace(options, parity_rate=0.5), payload_of(options, 3))
    for options in EVERY_LAYOUT
]
_SEGMENTS = [Segmenter(options).split(payload) for options, payload in _PAYLOADS]


def _genuine_segments() -> list[bytes]:
    """Data and parity, and a payload of one segment."""
    short = Segmenter(SMALL).split(b"short")
    return [*short, *(one for segments in _SEGMENTS for one in segments)]


def _changed_segment(random: Random, value: bytes, other: bytes) -> bytes:
    if random.random() < 0.2:
        return changed_bytes(random, value, other)
    return changed_protobuf(random, value)


def _check_reassembly(value: bytes) -> bool:
    """Added to what is held of genuine payloads, it gives one, or the declared error.

    What it completes has the hash that the segment names.
    """
    reassembler = Reassembler(SMALL)
    for segments in _SEGMENTS:
        for segment in segments[:2]:
            reassembler.add(segment, START_MS)
    held_bytes = reassembler.held_bytes
    try:
        progress = reassembler.add(value, START_MS)
    except SegmentationError as error:
        check_text(str(error))
        assert reassembler.held_bytes <= held_bytes
        return False
    assert progress.received <= progress.total
    assert (progress.payload is not None) == (progress.outcome is Outcome.COMPLETE)
    if progress.payload is not None:
        assert payload_hash(progress.payload) == progress.payload_hash
    reassembler.expire(START_MS + SMALL.idle_timeout_ms)
    assert (reassembler.incomplete, reassembler.held_bytes) == (0, 0)
    return True


def _encryption() -> ChaChaEncryption:
    return ChaChaEncryption(bytes(KEY_BYTES), "tea", Random(1).randbytes)


def _genuine_ciphertexts() -> list[bytes]:
    """Of frames of any length."""
    return [_encryption().encrypt(bytes(length)) for length in (0, 1, 100)]


def _check_ciphertext(value: bytes) -> bool:
    """Only what was encrypted is accepted."""
    try:
        frame = _encryption().decrypt(value)
    except EncryptionError as error:
        check_text(str(error))
        return False
    assert value in _genuine_ciphertexts()
    assert not any(frame)
    return True


def _genuine_states() -> list[bytes]:
    """Of limits of which nothing, something and everything is spent."""
    return [_limit_of(times).state() for times in ([], [START_MS], [START_MS] * 100)]


def _limit_of(times: list[int]) -> RateLimit:
    limit = RateLimit(RateLimitOptions())
    for now_ms in times:
        limit.take(Urgency.FIRST, now_ms)
    return limit


def _check_state(value: bytes) -> bool:
    """What is restored can be asked and stored again."""
    limit = RateLimit(RateLimitOptions())
    try:
        limit.restore(value)
    except StateError as error:
        check_text(str(error))
        return False
    assert limit.used(START_MS) >= 0
    assert limit.renewed_ms(START_MS) > START_MS
    again = RateLimit(RateLimitOptions())
    again.restore(limit.state())
    assert again.used(START_MS) == limit.used(START_MS)
    return True


TARGETS = (
    Target("reassembly", _genuine_segments, _changed_segment, _check_reassembly),
    Target("ciphertext", _genuine_ciphertexts, changed_bytes, _check_ciphertext),
    Target("rate-limit-state", _genuine_states, changed_bytes, _check_state),
)
