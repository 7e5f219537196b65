"""Computes when SDS-R allows a participant to request a message or to answer a request.

The time of a request (T_req) and the time of an answer (T_resp) are computed from
hashes of public ids. Therefore, participants choose different times without
coordination, and an observer can verify the times.

Sources: the SDS-R implementation guide; js-waku packages/sds message_channel/repair;
nim-sds sds/sds_utils.nim.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256

import farmhash


class RepairHash(StrEnum):
    """The hash function for T_req, T_resp and response groups (SDS-R guide).

    SHA256: The first 8 bytes of SHA-256, most significant first (the guide, js-waku).
    FARM: FarmHash64, Nim's hash function for strings. The result is read as a signed
    integer, and its absolute value is the hash (nim-sds).
    """

    SHA256 = "sha256"
    FARM = "farm"


def hash_of(text: str, hashed_with: RepairHash) -> int:
    """Return the hash of a text, in [0, 2**64) (SDS-R guide, "Hash Function")."""
    bits = _bits_of(text, hashed_with)
    return bits if hashed_with is RepairHash.SHA256 else _without_sign(bits)


def distance_between(one_id: str, other_id: str, hashed_with: RepairHash) -> int:
    """Return the distance of two participants, in [0, 2**64); 0 for equal ids.

    The distance is the XOR of the ids' hashes (SDS-R guide, "Calculate T_resp").
    nim-sds (FARM) takes the absolute value of the XOR, but not of each hash.
    """
    distance = _bits_of(one_id, hashed_with) ^ _bits_of(other_id, hashed_with)
    return distance if hashed_with is RepairHash.SHA256 else _without_sign(distance)


def request_offset_ms(
    participant_id: str,
    message_id: str,
    t_min_ms: int,
    t_max_ms: int,
    hashed_with: RepairHash,
) -> int:
    """Return the time until T_req, in [T_min, T_max) ms (SDS-R, "Calculate T_req").

    As in js-waku and nim-sds, the two ids are concatenated, and the result is hashed.
    """
    hashed = hash_of(participant_id + message_id, hashed_with)
    return hashed % (t_max_ms - t_min_ms) + t_min_ms


def response_offset_ms(
    participant_id: str,
    sender_id: str,
    message_id: str,
    t_max_ms: int,
    hashed_with: RepairHash,
) -> int:
    """Return the time until T_resp, in [0, T_max) ms (SDS-R, "Calculate T_resp").

    For the message's sender, the time is 0.
    """
    distance = distance_between(participant_id, sender_id, hashed_with)
    # nim-sds reduces both factors modulo `t_max_ms` before it multiplies them. The
    # result is the same.
    return distance * hash_of(message_id, hashed_with) % t_max_ms


def _bits_of(text: str, hashed_with: RepairHash) -> int:
    if hashed_with is RepairHash.SHA256:
        return int.from_bytes(sha256(text.encode()).digest()[:8], "big")
    hashed: int = farmhash.Fingerprint64(text.encode())
    return hashed


def _without_sign(bits: int) -> int:
    """Read 64 bits as a signed integer, and return its absolute value."""
    return abs(bits - (1 << 64) if bits >> 63 else bits)
