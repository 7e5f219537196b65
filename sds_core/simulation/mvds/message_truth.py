"""What a correct monitor finds of one message of MVDS (docs/figures.md, 14).

It is concluded from the sendings that taps recorded, of which the simulation knows what
they were. The observer is not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

Heard = Callable[[str, int, int], bool]
"""Whether a node was heard from a time up to and including another, Unix ms."""

DEADLINE_MS = 120_000
GRACE_MS = 5_000


class MessageTruth:
    """One message, or an id of which no message was recorded yet.

    Attributes:
        group: Id of its group, hexadecimal; empty until its MESSAGE was recorded.
    """

    def __init__(self) -> None:
        self.group = ""
        self._count: Counter[str] = Counter()
        self._first_ms: int | None = None
        # First times, Unix ms: by node, or by sender and receiver.
        self._held: dict[str, int] = {}
        self._acked: dict[str, int] = {}
        self._acked_to: dict[tuple[str, str], int] = {}
        self._offered: dict[tuple[str, str], int] = {}
        self._requested: dict[tuple[str, str], int] = {}
        self._sent: dict[tuple[str, str], int] = {}
        self._addressed: dict[str, int] = {}
        self._sendings: Counter[str] = Counter()

    def acked(self, at_ms: int, sender: str, receiver: str, size: int) -> None:
        """An ACK was recorded."""
        self._said(at_ms, "ack", size, (sender, receiver) in self._acked_to)
        back = self._sent.get((receiver, sender))
        if (sender, receiver) not in self._acked_to:
            self._acked_to[sender, receiver] = at_ms
            if back is not None:
                self._count["ack_latency_ms.count"] += 1
                self._count["ack_latency_ms.sum"] += at_ms - back
        if sender not in self._acked:
            self._acked[sender] = at_ms
            first_ms = at_ms if self._first_ms is None else self._first_ms
            self._count["deliveries"] += 1
            self._count["delivery_ms.count"] += 1
            self._count["delivery_ms.sum"] += at_ms - first_ms
            if sendings := self._sendings[sender]:
                self._count["sends.messages"] += sendings
                self._count["sends.deliveries"] += 1
        self._held.setdefault(sender, at_ms)

    def offered(self, at_ms: int, sender: str, receiver: str, size: int) -> None:
        """An OFFER was recorded."""
        self._said(at_ms, "offer", size, (sender, receiver) in self._offered)
        self._offered.setdefault((sender, receiver), at_ms)
        self._count["needless_offers"] += receiver in self._held
        self._held.setdefault(sender, at_ms)

    def requested(self, at_ms: int, sender: str, receiver: str, size: int) -> None:
        """A REQUEST was recorded."""
        self._said(at_ms, "request", size, (sender, receiver) in self._requested)
        self._requested.setdefault((sender, receiver), at_ms)

    def sent(
        self, at_ms: int, sender: str, receiver: str, size: int, group: str
    ) -> None:
        """The MESSAGE was recorded."""
        self._said(at_ms, "message", size, (sender, receiver) in self._sent)
        self.group = group
        self._sent.setdefault((sender, receiver), at_ms)
        if receiver in self._acked:
            self._count["duplicates"] += 1
        else:
            self._addressed.setdefault(receiver, at_ms)
            self._sendings[receiver] += 1
        self._held.setdefault(sender, at_ms)

    def figures(self, heard: Heard, end_ms: int) -> Counter[str]:
        """Return the figures of the message as of a time, Unix ms."""
        count = Counter(self._count)
        count["messages"] = 1
        for receiver, sent_ms in self._addressed.items():
            count["addressed"] += 1
            end = self._end(receiver, sent_ms, heard, end_ms)
            count[end] += 1
            is_late = self._acked.get(receiver, sent_ms) > sent_ms + DEADLINE_MS
            count["resolved"] += end == "unacknowledged" and is_late
        for (sender, receiver), at_ms in self._offered.items():
            answer_ms = self._requested.get((receiver, sender))
            is_open = self._is_open(receiver, at_ms, answer_ms, end_ms)
            count["unrequested_offers"] += is_open
        for (requester, asked), at_ms in self._requested.items():
            answer_ms = self._sent.get((asked, requester))
            is_open = self._is_open(requester, at_ms, answer_ms, end_ms)
            count["unanswered_requests"] += is_open
        return count

    def _said(self, at_ms: int, type_: str, size: int, is_again: bool) -> None:
        if self._first_ms is None:
            self._first_ms = at_ms
        self._count[f"records.{type_}"] += 1
        self._count[f"bytes.{type_}"] += size
        self._count[f"retransmissions.{type_}"] += is_again

    def _end(self, receiver: str, sent_ms: int, heard: Heard, end_ms: int) -> str:
        """Return how a receiver of the message ended."""
        due_ms = sent_ms + DEADLINE_MS
        if self._acked.get(receiver, end_ms + 1) <= due_ms:
            return "acknowledged_in_time"
        if end_ms <= due_ms:
            return "in_flight"
        # By whole seconds, rounded down.
        from_ms = -(-(sent_ms + GRACE_MS) // 1_000) * 1_000
        holds = self._held.get(receiver, end_ms + 1) <= due_ms
        if heard(receiver, from_ms, due_ms) and not holds:
            return "unacknowledged"
        return "unwitnessed"

    def _is_open(
        self, node: str, begin_ms: int, answer_ms: int | None, end_ms: int
    ) -> bool:
        """Whether an offer to a node, or its request, had no effect by its deadline."""
        due_ms = begin_ms + DEADLINE_MS
        if end_ms <= due_ms:
            return False
        return not any(
            at_ms is not None and at_ms <= due_ms
            for at_ms in (answer_ms, self._held.get(node))
        )
