"""What can go wrong with an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one answer.

    Attributes:
        status: HTTP status instead of the answer; nothing is cleared.
        retry_after: The header, of an answer with `status` or `store_status`.
        store_status: Status of the store inside an answer with 200.
        body: Instead of the answer, which is cleared all the same.
        delay_s: Between clearing and answering, seconds.
        extra: JSON put between the messages, good or bad.
        duplicated: Every message twice.
        reordered: Last message first.
        cut: The connection ends in the middle of the body.
        wrong_hash: The store says hashes that are none of its messages.
        base64_hashes: The store writes hashes as older versions did.
    """

    status: int | None = None
    retry_after: str | None = None
    store_status: int | None = None
    body: bytes | None = None
    delay_s: float = 0.0
    extra: Sequence[bytes] = ()
    duplicated: bool = False
    reordered: bool = False
    cut: bool = False
    wrong_hash: bool = False
    base64_hashes: bool = False


NO_FAULT = Fault()
