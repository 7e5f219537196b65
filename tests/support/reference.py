"""The figures of a channel, computed slowly and obviously from all its records.

Written from the observer model, not from the code: nothing is kept from one record to
the next, every figure looks through the whole list. For traffic shorter than the
horizon (3600 s) and within the limits of what is remembered.

Where the model leaves a choice, this follows it (all records have a hash, or none):
- a gap's time runs from the first naming after the warm-up;
- filters are evidence about a gap from the frame that names it first after the
  warm-up on;
- opportunities are frames after the message in topic order;
- without hashes only the latest broadcast of the same bytes is compared.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sds_core.wire import BloomError, BloomFilter, Dialect, FrameKind, encode
from tests.support.frames import Record, running_clocks

BOUNDS_MS = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
    600_000,
]  # fmt: skip
WINDOWS_MS = {Dialect.SPEC: 135_000, Dialect.NIM: 315_000}


@functools.lru_cache(maxsize=1024)
def _filter(dialect: Dialect, raw: bytes) -> BloomFilter | None:
    try:
        return BloomFilter.from_wire(dialect, raw) if raw else None
    except BloomError:
        return None


@dataclass(frozen=True)
class Seen:
    """One record that is no duplicate, with the channel's clock at it."""

    place: int
    clock: int
    record: Record

    @property
    def at(self) -> int:
        """Event time."""
        return self.record.at

    @property
    def sender(self) -> str:
        """Empty if unknown."""
        return self.record.frame.sender_id

    @property
    def message_id(self) -> str:
        """The frame's own id."""
        return self.record.frame.message_id

    @property
    def is_content(self) -> bool:
        """Whether it carries a message."""
        return self.record.frame.kind is FrameKind.CONTENT

    @property
    def lamport(self) -> int:
        """0 where the kind has none."""
        return self.record.frame.lamport or 0

    @property
    def dialect(self) -> Dialect:
        """Of the frame."""
        return self.record.frame.dialect

    def history(self) -> list[str]:
        """Ids named, in order."""
        return [entry.message_id for entry in self.record.frame.causal_history]

    def sender_named(self, message_id: str) -> str:
        """The sender that its history gives for an id."""
        for entry in self.record.frame.causal_history:
            if entry.message_id == message_id and entry.sender_id:
                return entry.sender_id
        return ""

    def requests(self) -> set[str]:
        """Ids asked for."""
        return {entry.message_id for entry in self.record.frame.repair_request}

    def filter(self) -> BloomFilter | None:
        """Its filter, if it can be read."""
        return _filter(self.dialect, self.record.frame.bloom_filter)

    def holds(self, message_id: str) -> bool:
        """Whether its filter has an id."""
        filter_ = self.filter()
        return filter_ is not None and filter_.contains(message_id)

    def is_by_other_than(self, other: Seen) -> bool:
        """Whether both senders are known and differ."""
        return bool(self.sender and other.sender) and self.sender != other.sender


class Reference:
    """All figures of one channel at one moment.

    Args:
        records: In topic order.
        end: The clock at the end; not before the last record's.
    """

    def __init__(self, records: Sequence[Record], end: int) -> None:
        self.end = end
        self.seen = self._without_duplicates(records)
        self.broadcasts = [one for one in self.seen if not self._is_replica(one)]
        self.first_copies = [
            one
            for one in self.broadcasts
            if not one.is_content or self._first_copy(one.message_id) is one
        ]
        self.messages = [one for one in self.first_copies if one.is_content]
        self.collisions = [
            one
            for one in self.broadcasts
            if one.is_content
            and (one.sender, one.lamport)
            != (self.first(one).sender, self.first(one).lamport)
        ]
        self.rebroadcasts = [
            one
            for one in self.broadcasts
            if one.is_content
            and one is not self.first(one)
            and one not in self.collisions
        ]

    # Section 2.

    def _without_duplicates(self, records: Sequence[Record]) -> list[Seen]:
        clocks = list(running_clocks(records))
        seen, numbers = [], set()
        for place, record in enumerate(records):
            number = (record.observer, record.seq)
            if record.observer and record.seq is not None and number in numbers:
                continue
            numbers.add(number)
            seen.append(Seen(place, clocks[place], record))
        return seen

    def _is_replica(self, one: Seen) -> bool:
        """Broadcast by broadcast, since copies are compared with their first."""
        return self._broadcast_of()[one.place] != one.place

    @functools.cache  # noqa: B019 (a reference lives for one example)
    def _broadcast_of(self) -> dict[int, int]:
        """The place of the broadcast that each record is a copy of."""
        of: dict[int, int] = {}
        latest: dict[bytes, Seen] = {}
        by_hash: dict[int, int] = {}
        for one in self.seen:
            value = encode(one.record.frame)
            other = latest.get(value)
            if one.record.waku_hash:
                of[one.place] = by_hash.setdefault(one.record.waku_hash, one.place)
            elif other is not None and abs(one.at - other.at) <= 2_000:
                of[one.place] = other.place
            else:
                of[one.place] = one.place
            if of[one.place] == one.place:
                latest[value] = one
        return of

    def _first_copy(self, message_id: str) -> Seen | None:
        for one in self.broadcasts:
            if one.is_content and one.message_id == message_id:
                return one
        return None

    def first(self, one: Seen) -> Seen:
        """The first copy of the same message."""
        first = self._first_copy(one.message_id)
        assert first is not None
        return first

    def latest_request(self, message_id: str, place: int) -> Seen | None:
        """The latest request for an id before a place in the topic."""
        asking = [
            one
            for one in self.broadcasts
            if one.place < place and message_id in one.requests()
        ]
        return asking[-1] if asking else None

    def is_live(self, message_id: str, at: Seen) -> bool:
        """Whether the latest request before a frame is in its window then."""
        request = self.latest_request(message_id, at.place)
        return (
            request is not None
            and at.clock - request.clock <= WINDOWS_MS[request.dialect]
        )

    # Section 4.

    def definite(self, m: Seen) -> Seen | None:
        """The frame that acknowledged a message."""
        for one in self.broadcasts:
            if one.is_by_other_than(m) and m.message_id in one.history():
                return one
        return None

    def probable(self, m: Seen) -> Seen | None:
        """The frame whose filter made a message probably acknowledged."""
        active = {
            one.sender
            for one in self.first_copies
            if one.is_by_other_than(m) and one.place < m.place and one.at < m.at
        }
        needed = max(1, min(2, len(active)))
        definite = self.definite(m)
        witnesses: set[str] = set()
        rate = 1.0
        for one in self.broadcasts:
            if one.place < m.place:
                continue
            if definite is not None and definite.place <= one.place:
                return None
            if (
                one.is_by_other_than(m)
                and one.sender not in witnesses
                and one.holds(m.message_id)
            ):
                filter_ = one.filter()
                assert filter_ is not None
                witnesses.add(one.sender)
                rate *= filter_.false_positive_rate()
                if rate < 1e-6 and len(witnesses) >= needed:
                    return one
        return None

    def acknowledged_at(self, m: Seen) -> int | None:
        """The clock at which a message was first acknowledged."""
        found = [one for one in (self.definite(m), self.probable(m)) if one]
        return min((max(one.clock, m.clock) for one in found), default=None)

    def fate(self, m: Seen) -> str:
        """What became of a message."""
        deadline = m.clock + 120_000
        acknowledged = self.acknowledged_at(m)
        if acknowledged is not None and acknowledged <= deadline:
            return "acknowledged_in_time"
        if self.end <= deadline:
            return "in_flight"
        for one in self.first_copies:
            if (
                one.record.frame.kind is not FrameKind.EPHEMERAL
                and one.is_by_other_than(m)
                and one.dialect is m.dialect
                and one.place > m.place
                and one.lamport > m.lamport
                and one.at > m.at
                and one.clock <= deadline
            ):
                return "unacknowledged"
        return "unwitnessed"

    # Section 6.

    def warm_up_end(self) -> int:
        """The last moment of the channel's first 30 s."""
        return self.seen[0].clock + 30_000

    def l0(self, dialect: Dialect) -> int:
        """The highest lamport of the warm-up."""
        return max(
            (
                one.lamport
                for one in self.broadcasts
                if one.clock <= self.warm_up_end() and one.dialect is dialect
            ),
            default=0,
        )

    def is_seen(self, message_id: str, at: Seen) -> bool:
        """Whether a tap had shown an id by the time of a frame, or the frame does."""
        first = self._first_copy(message_id)
        return message_id == at.message_id or (
            first is not None and first.place <= at.place
        )

    def namings(self, message_id: str) -> list[Seen]:
        """Frames that name an id while it is unseen."""
        return [
            one
            for one in self.broadcasts
            if message_id in one.history() and not self.is_seen(message_id, one)
        ]

    def opening(self, message_id: str) -> Seen | None:
        """The naming that makes an id a gap, if one does."""
        after = [
            one for one in self.namings(message_id) if one.clock > self.warm_up_end()
        ]
        if not after:
            return None
        naming = after[0]
        before = naming.history()[: naming.history().index(message_id)]
        for earlier in before:
            first = self._first_copy(earlier)
            if (
                first is not None
                and first.place <= naming.place
                and first.lamport > self.l0(first.dialect)
            ):
                return naming
        return None

    def gap(self, message_id: str) -> tuple[str, int | None] | None:
        """Outcome of an id's gap, and its duration; None if it never opened."""
        opening = self.opening(message_id)
        if opening is None:
            return None
        first = self._first_copy(message_id)
        until = self.end if first is None else first.clock
        if until <= opening.clock + 2_000:
            return None
        deadline = opening.clock + 300_000
        if first is not None and first.clock <= deadline:
            duration = max(0, first.at - opening.at)
            if self.latest_request(message_id, first.place) is None:
                return "late", duration
            if self.is_live(message_id, first):
                return "repaired", duration
            return "recovered_late", duration
        if self.end <= deadline:
            return "open", None
        if self._network_had(message_id, opening, deadline):
            return "tap_gap", None
        return "lost", None

    def _network_had(self, message_id: str, opening: Seen, deadline: int) -> bool:
        namings = [one for one in self.namings(message_id) if one.clock <= deadline]
        named = [one.sender_named(message_id) for one in namings]
        sender = next((name for name in named if name), "")
        shown = {one.sender for one in namings}
        for one in self.broadcasts:
            in_time = opening.place <= one.place and one.clock <= deadline
            if in_time and one.holds(message_id):
                shown.add(one.sender)
        shown -= {"", sender}
        return len(shown) >= (1 if sender else 2)

    # Section 7.

    def episodes(self, message_id: str) -> tuple[list[int], list[int], int]:
        """Response times, times of expiry, and redundant responses of an id."""
        answers: list[int] = []
        expired: list[int] = []
        redundant = 0
        began: int | None = None
        ends = -1
        for one in self.broadcasts:
            if began is not None and one.clock > ends:
                expired.append(ends)
                began = None
            is_copy = one.is_content and one.message_id == message_id
            if is_copy and one not in self.collisions and one.clock <= ends:
                if began is None:
                    redundant += 1
                else:
                    answers.append(max(0, one.at - began))
                    began = None
            if message_id in one.requests():
                began = one.at if began is None else began
                ends = one.clock + WINDOWS_MS[one.dialect]
        if began is not None and self.end > ends:
            expired.append(ends)
        return answers, expired, redundant

    # Everything.

    def figures(self) -> dict[str, Any]:
        """All figures by the names of `ChannelTotals`; durations as counts and sum."""
        named = {i for one in self.broadcasts for i in one.history()}
        asked = {i for one in self.broadcasts for i in one.requests()}
        fates = [self.fate(m) for m in self.messages]
        gaps = {i: gap for i in named if (gap := self.gap(i)) is not None}
        outcomes = [outcome for outcome, _ in gaps.values()]
        retracted = {
            i
            for i, (outcome, _) in gaps.items()
            if outcome == "lost" and self._first_copy(i) is not None
        }
        losses = [
            opening.clock + 300_000
            for i, (outcome, _) in gaps.items()
            if outcome == "lost" and i not in retracted and (opening := self.opening(i))
        ]
        episodes = [self.episodes(i) for i in asked]
        answers = [a for found, _, _ in episodes for a in found]
        expired = [e for _, found, _ in episodes for e in found]
        definite = [(m, d) for m in self.messages if (d := self.definite(m))]
        probable = [(m, p) for m in self.messages if (p := self.probable(m))]
        in_flight = [
            m.at
            for m, fate in zip(self.messages, fates, strict=True)
            if fate == "in_flight"
        ]
        repairs = [r for r in self.rebroadcasts if self.is_live(r.message_id, r)]
        figures = {
            "first_event": min((one.at for one in self.seen), default=None),
            "last_event": max((one.at for one in self.seen), default=None),
            "frames": self._frames(),
            "replicas": len(self.seen) - len(self.broadcasts),
            "rebroadcasts_repair": len(repairs),
            "rebroadcasts_retry": len(self.rebroadcasts) - len(repairs),
            "messages": len(self.messages),
            "message_id_collisions": len(self.collisions),
            "acknowledged_definite": len(definite),
            "acknowledged_probable": len(probable),
            "oldest_in_flight": min(in_flight, default=None),
            "definite_latency": histogram(max(0, d.at - m.at) for m, d in definite),
            "probable_latency": histogram(max(0, p.at - m.at) for m, p in probable),
            "gaps_opened": len(gaps),
            "gaps_retracted": len(retracted),
            "gap_duration": histogram(d for _, d in gaps.values() if d is not None),
            "repair_requests": sum(len(one.requests()) for one in self.broadcasts),
            "repair_requests_for_received": sum(
                one.holds(i) for one in self.broadcasts for i in one.requests()
            ),
            "repair_answered": len(answers),
            "repair_expired": len(expired),
            "repair_redundant": sum(redundant for _, _, redundant in episodes),
            "repair_response": histogram(answers),
            "participants": len({one.sender for one in self.first_copies} - {""}),
            "verdict": self._verdict(losses, fates, "open" in outcomes, expired),
        }
        for fate in ("acknowledged_in_time", "unacknowledged", "unwitnessed"):
            figures[fate] = fates.count(fate)
        figures["in_flight"] = len(in_flight)
        for outcome in ("late", "repaired", "recovered_late"):
            figures[f"gaps_{outcome}"] = outcomes.count(outcome)
        for outcome in ("lost", "tap_gap", "open"):
            figures[f"gaps_{outcome}"] = outcomes.count(outcome)
        return figures

    def _frames(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for one in self.broadcasts:
            key = f"{one.record.frame.kind}.{one.dialect}"
            counts[key] = counts.get(key, 0) + 1
        return counts

    # Section 8.

    def _verdict(
        self, losses: list[int], fates: list[str], gaps_open: bool, expired: list[int]
    ) -> tuple[str, str]:
        edge = self.end - 600_000
        if not self.seen or self.end - self.seen[0].clock < 30_000:
            return "warming_up", "warming_up"
        if any(loss >= edge for loss in losses):
            return "failing", "lost"
        # Deadlines lie in the window to the whole second, rounded up.
        ended = [
            fate
            for m, fate in zip(self.messages, fates, strict=True)
            if self.end > m.clock + 120_000
            and -(-(m.clock + 120_000) // 1_000) * 1_000 >= edge
        ]
        missed = ended.count("unacknowledged")
        if missed > 0.05 * len(ended):
            return "failing", "unacknowledged"
        if gaps_open:
            return "degraded", "recovering"
        if missed:
            return "degraded", "unacknowledged"
        if any(moment >= edge for moment in expired):
            return "degraded", "repair_expired"
        if not any(one.is_content and one.clock >= edge for one in self.broadcasts):
            return "quiet", "quiet"
        return "ok", "ok"


def histogram(durations: Any) -> tuple[list[int], int]:
    """Counts per bucket, the open one last, and the sum."""
    values = list(durations)
    places = [sum(bound < value for bound in BOUNDS_MS) for value in values]
    return [places.count(i) for i in range(len(BOUNDS_MS) + 1)], sum(values)
