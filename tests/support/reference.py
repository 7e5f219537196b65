"""The figures of a channel, computed slowly and simply from all its records.

Written from docs/figures.md, not from the code: nothing is kept from one record to
the next, every figure looks through the whole list. For traffic shorter than the
horizon (3600 s) and within the limits of what is remembered.

Where the model leaves a choice, this follows it (all records have a hash, or none):
- a gap's time runs from the first naming after the warm-up;
- filters are evidence about a gap from the frame that names it first after the
  warm-up on;
- opportunities are frames after the message in topic order;
- without hashes only the latest broadcast of the same bytes is compared;
- a filter says nothing about messages of the other dialect;
- a message that was named before it was seen shows no delivery to be lost;
- a filter of another size is one that rolled over;
- a roll-over that leaves as many bits set shows by four ids: the first three, and the
  newest, that the participant's newest filters were the first to show.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sds_core.wire import BloomError, BloomFilter, Dialect, FrameKind, encode
from tests.support.frames import START_MS, Record, running_clocks

BOUNDS_MS = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
    600_000,
]  # fmt: skip
WINDOWS_MS = {Dialect.SPEC: 135_000, Dialect.NIM: 315_000}
EPOCH_MS = VERDICT_WINDOW_MS = 600_000

PARTS = {
    Dialect.SPEC: {20: "content", 11: "history", 12: "bloom", 13: "repair"},
    Dialect.NIM: {5: "content", 3: "history", 6: "bloom", 13: "repair"},
}
"""Field numbers of the parts of a frame; every other field is of "other"."""

Moment = tuple[int, int]
"""Clock and place: what the clock alone brings about comes before any frame."""


@functools.lru_cache(maxsize=1024)
def _filter(dialect: Dialect, raw: bytes) -> BloomFilter | None:
    try:
        return BloomFilter.from_wire(dialect, raw) if raw else None
    except BloomError:
        return None


@functools.lru_cache(maxsize=100_000)
def _holds(dialect: Dialect, raw: bytes, message_id: str) -> bool:
    filter_ = _filter(dialect, raw)
    return filter_ is not None and filter_.contains(message_id)


@functools.lru_cache(maxsize=1024)
def bits_set(dialect: Dialect, raw: bytes) -> int:
    """Ones among the bits in use of a filter that can be read."""
    filter_ = _filter(dialect, raw)
    assert filter_ is not None
    return filter_.bits_set()


def bytes_by_part(dialect: Dialect, value: bytes) -> Counter[str]:
    """Return the lengths of a frame's top-level fields by part."""
    sizes: Counter[str] = Counter()
    end = 0
    while end < len(value):
        begin = end
        tag, end = _varint(value, end)
        match tag & 7:
            case 0:
                _, end = _varint(value, end)
            case 1:
                end += 8
            case 2:
                length, end = _varint(value, end)
                end += length
            case 5:
                end += 4
            case wire_type:
                message = f"wire type {wire_type} at {begin}"
                raise ValueError(message)
        sizes[PARTS[dialect].get(tag >> 3, "other")] += end - begin
    assert end == len(value), "a field is longer than the frame"
    return sizes


def _varint(value: bytes, place: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    number = 0
    for count, byte in enumerate(value[place : place + 10]):
        number |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return number, place + count + 1
    message = f"no number at {place}"
    raise ValueError(message)


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
    def moment(self) -> Moment:
        """The moment at which the record changes figures."""
        return self.clock, self.place

    @property
    def is_content(self) -> bool:
        """Whether it is a content frame."""
        return self.record.frame.kind is FrameKind.CONTENT

    @property
    def is_ephemeral(self) -> bool:
        """Whether it is an ephemeral frame."""
        return self.record.frame.kind is FrameKind.EPHEMERAL

    @property
    def lamport(self) -> int:
        """Lamport timestamp; 0 if the kind has none."""
        return self.record.frame.lamport or 0

    @property
    def dialect(self) -> Dialect:
        """Dialect of the frame."""
        return self.record.frame.dialect

    def history(self) -> list[str]:
        """Ids named, in order."""
        return [entry.message_id for entry in self.record.frame.causal_history]

    def sender_named(self, message_id: str) -> str:
        """Return the sender that its history gives for an id."""
        for entry in self.record.frame.causal_history:
            if entry.message_id == message_id and entry.sender_id:
                return entry.sender_id
        return ""

    def requests(self) -> set[str]:
        """Ids that it requests."""
        return {entry.message_id for entry in self.record.frame.repair_request}

    def filter(self) -> BloomFilter | None:
        """Its filter, if it can be read."""
        return _filter(self.dialect, self.record.frame.bloom_filter)

    def holds(self, message_id: str) -> bool:
        """Whether its filter contains an id."""
        return _holds(self.dialect, self.record.frame.bloom_filter, message_id)

    def bits_set(self) -> int:
        """Number of bits set in its readable filter."""
        return bits_set(self.dialect, self.record.frame.bloom_filter)

    def value(self) -> bytes:
        """The frame as on the wire."""
        return encode(self.record.frame)

    def shows(self, message_id: str) -> bool:
        """Whether history or filter show that its sender has the message."""
        return message_id in self.history() or self.holds(message_id)

    def is_by_other_than(self, other: Seen) -> bool:
        """Whether both senders are known and differ."""
        return bool(self.sender and other.sender) and self.sender != other.sender


@dataclass(frozen=True)
class Delivery:
    """How one message reached one participant, as far as frames show it.

    Attributes:
        message: Its first copy.
        participant: Who should have it.
        missing: The participant's first frame that shows it missing, if one does.
        lost: The first such frame late enough to call it lost.
        shown: The participant's first frame that shows that it has it.
    """

    message: Seen
    participant: str
    missing: Seen | None
    lost: Seen | None
    shown: Seen | None

    @property
    def outcome(self) -> str:
        """`first_pass`, `recovered`, `lost`, or none as long as it has not ended."""
        if self.lost is not None:
            return "lost"
        if self.shown is None:
            return ""
        return "first_pass" if self.missing is None else "recovered"

    @property
    def is_retracted(self) -> bool:
        """Whether it was reported lost and shown later."""
        return self.lost is not None and self.shown is not None

    def recovery(self) -> int:
        """Time from the first frame that shows it missing to the first with it."""
        assert self.missing is not None
        assert self.shown is not None
        return max(0, self.shown.at - self.missing.at)


class Span(NamedTuple):
    """A cause of a verdict, from one moment to before another."""

    what: str
    begins: Moment
    ends: Moment


def after(clock: int) -> Moment:
    """Return the first moment at which the clock is past a time."""
    return clock + 1, -1


def out_of_window(clock: int) -> Moment:
    """Return when an event leaves the window of the verdict."""
    return after(clock + VERDICT_WINDOW_MS)


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
        """Decide copies broadcast by broadcast: each is compared with its first."""
        return self._broadcast_of()[one.place] != one.place

    @functools.cache  # noqa: B019 (a reference lives for one example)
    def _broadcast_of(self) -> dict[int, int]:
        """Return the position of the broadcast of which each record is a copy."""
        of: dict[int, int] = {}
        latest: dict[bytes, Seen] = {}
        by_hash: dict[int, int] = {}
        for one in self.seen:
            value = one.value()
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
        """Return the first copy of the same message."""
        first = self._first_copy(one.message_id)
        assert first is not None
        return first

    def latest_request(self, message_id: str, place: int) -> Seen | None:
        """Return the latest request for an id before a position in the topic."""
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
        """Return the frame that acknowledged a message."""
        for one in self.broadcasts:
            if one.is_by_other_than(m) and m.message_id in one.history():
                return one
        return None

    def probable(self, m: Seen) -> Seen | None:
        """Return the frame whose filter made a message probably acknowledged."""
        needed = max(1, min(2, len(self.audience(m))))
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
        """Return the clock at which a message was first acknowledged."""
        found = [one for one in (self.definite(m), self.probable(m)) if one]
        return min((max(one.clock, m.clock) for one in found), default=None)

    def fate(self, m: Seen) -> str:
        """Return the fate of a message."""
        deadline = m.clock + 120_000
        acknowledged = self.acknowledged_at(m)
        if acknowledged is not None and acknowledged <= deadline:
            return "acknowledged_in_time"
        if self.end <= deadline:
            return "in_flight"
        for one in self.first_copies:
            if (
                not one.is_ephemeral
                and one.is_by_other_than(m)
                and one.dialect is m.dialect
                and one.place > m.place
                and one.lamport > m.lamport
                and one.at > m.at
                and one.clock <= deadline
            ):
                return "unacknowledged"
        return "unwitnessed"

    # Section 5.

    def audience(self, m: Seen) -> set[str]:
        """Return the other participants active when a message was first seen."""
        return {
            one.sender
            for one in self.first_copies
            if one.is_by_other_than(m)
            and one.place < m.place
            and m.at - 3_600_000 <= one.at < m.at
        }

    @functools.cache  # noqa: B019 (a reference lives for one example)
    def deliveries(self) -> list[Delivery]:
        """Return the delivery of every message to each of its audience."""
        return [
            self._delivery(m, participant)
            for m in self.messages
            for participant in sorted(self.audience(m))
        ]

    def _frames_after(self, m: Seen, participant: str) -> list[Seen]:
        return [
            one
            for one in self.first_copies
            if one.sender == participant
            and one.place > m.place
            and one.clock <= m.clock + 3_600_000
        ]

    def shown(self, m: Seen, participant: str) -> Seen | None:
        """Return the participant's first frame that shows that it has a message."""
        for one in self._frames_after(m, participant):
            named = m.message_id in one.history()
            if named or (one.dialect is m.dialect and one.holds(m.message_id)):
                return one
        return None

    def _delivery(self, m: Seen, participant: str) -> Delivery:
        shown = self.shown(m, participant)
        missing = [
            one
            for one in self._frames_after(m, participant)
            if (shown is None or one.place < shown.place) and self.is_missing(m, one)
        ]
        late = [
            one
            for one in missing
            if one.at > m.at + 300_000 and not self.was_named_before(one)
        ]
        return Delivery(
            m,
            participant,
            missing[0] if missing else None,
            late[0] if late else None,
            shown,
        )

    def was_named_before(self, one: Seen) -> bool:
        """Whether a message was named before any tap saw it."""
        return one.is_content and any(
            other.place < one.place and one.message_id in other.history()
            for other in self.broadcasts
        )

    def is_missing(self, m: Seen, one: Seen) -> bool:
        """Whether a first copy of another participant shows that it lacks a message."""
        rolled_over = [
            other.at
            for other in self.roll_overs(one.sender)
            if other.place <= one.place
        ]
        return (
            not one.is_ephemeral
            and one.dialect is m.dialect
            and one.lamport > m.lamport
            and one.at > m.at + 5_000
            and one.filter() is not None
            and not one.shows(m.message_id)
            and m.at >= max(rolled_over, default=m.at)
        )

    @functools.cache  # noqa: B019
    def with_filter(self, sender: str) -> list[Seen]:
        """First copies of a sender that have a lamport and a readable filter."""
        return [
            one
            for one in self.first_copies
            if one.sender == sender
            and not one.is_ephemeral
            and one.filter() is not None
        ]

    @functools.cache  # noqa: B019
    def newest(self, sender: str, dialect: Dialect | None = None) -> list[Seen]:
        """Return the frames that had the sender's newest filter when they arrived."""
        found: list[Seen] = []
        for one in self.with_filter(sender):
            is_meant = dialect in (None, one.dialect)
            if is_meant and (not found or one.lamport > found[-1].lamport):
                found.append(one)
        return found

    @functools.cache  # noqa: B019
    def roll_overs(self, participant: str) -> list[Seen]:
        """Return the frames that show a roll-over of a participant's filter."""
        return [
            one
            for dialect in Dialect
            for one in self._roll_overs(self.newest(participant, dialect))
        ]

    def _roll_overs(self, newest: list[Seen]) -> Iterator[Seen]:
        begin = 0
        for place, (before, one) in enumerate(itertools.pairwise(newest), 1):
            if (
                _shape(one) != _shape(before)
                or one.bits_set() < before.bits_set()
                or not all(map(one.holds, self._watched(newest[begin:place])))
            ):
                yield one
                begin = place

    def _watched(self, frames: list[Seen]) -> list[str]:
        """Return the ids by which a participant's filters are compared."""
        participant = frames[0].sender
        shown = [
            (by.place, m.place, m.message_id)
            for m in self.messages
            if participant in self.audience(m)
            and (by := self.shown(m, participant)) in frames
            and m.message_id not in by.history()
        ]
        ids = [message_id for _, _, message_id in sorted(shown)]
        return ids[:3] + ids[-1:]

    # Section 6.

    def warm_up_end(self) -> int:
        """Return the last moment of the channel's first 30 s."""
        return self.seen[0].clock + 30_000

    def l0(self, dialect: Dialect) -> int:
        """Return the highest Lamport timestamp of the warm-up."""
        return max(
            (
                one.lamport
                for one in self.broadcasts
                if one.clock <= self.warm_up_end() and one.dialect is dialect
            ),
            default=0,
        )

    def is_seen(self, message_id: str, at: Seen) -> bool:
        """Whether a tap had seen an id by a frame, the frame itself included."""
        first = self._first_copy(message_id)
        return message_id == at.message_id or (
            first is not None and first.place <= at.place
        )

    def namings(self, message_id: str) -> list[Seen]:
        """Return the frames that name an id while it is unseen."""
        return [
            one
            for one in self.broadcasts
            if message_id in one.history() and not self.is_seen(message_id, one)
        ]

    def opening(self, message_id: str) -> Seen | None:
        """Return the naming that opens the gap of an id, or None."""
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
        """Return outcome and duration of an id's gap; None if it never opened."""
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

    def episodes(self, message_id: str) -> tuple[list[int], list[int], list[Seen]]:
        """Return response times, expiry times and all responses of an id."""
        answers: list[int] = []
        expired: list[int] = []
        responses: list[Seen] = []
        began: int | None = None
        ends = -1
        for one in self.broadcasts:
            if began is not None and one.clock > ends:
                expired.append(ends)
                began = None
            is_copy = one.is_content and one.message_id == message_id
            if is_copy and one not in self.collisions and one.clock <= ends:
                responses.append(one)
                if began is not None:
                    answers.append(max(0, one.at - began))
                    began = None
            if message_id in one.requests():
                began = one.at if began is None else began
                ends = one.clock + WINDOWS_MS[one.dialect]
        if began is not None and self.end > ends:
            expired.append(ends)
        return answers, expired, responses

    # Everything.

    def figures(self) -> dict[str, Any]:
        """Return all figures by the names of `ChannelTotals`."""
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
        episodes = [self.episodes(i) for i in asked]
        answers = [a for found, _, _ in episodes for a in found]
        responses = [r for _, _, found in episodes for r in found]
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
            "repair_expired": sum(len(expired) for _, expired, _ in episodes),
            "repair_redundant": len(responses) - len(answers),
            "repair_response": histogram(answers),
            "repair_bytes_response": sum(len(one.value()) for one in responses),
            "participants": len({one.sender for one in self.first_copies} - {""}),
            "participants_lately": len(self.participants_lately()),
            "epoch_messages_max": self.epoch_messages_max(),
            "bloom_worst": self.bloom_worst(),
            "verdict": self.verdict_at(self.last_moment()),
            "verdict_since": self.verdict_since(),
        }
        deliveries = self.deliveries()
        delivered = [one.outcome for one in deliveries]
        for outcome in ("first_pass", "recovered", "lost"):
            figures[f"deliveries_{outcome}"] = delivered.count(outcome)
        figures["deliveries_retracted"] = sum(one.is_retracted for one in deliveries)
        figures["delivery_recovery"] = histogram(
            one.recovery() for one in deliveries if one.outcome == "recovered"
        )
        sizes = self.bytes()
        for part in ("content", "history", "bloom", "repair", "other"):
            figures[f"bytes_{part}"] = sizes[part]
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

    # Section 9.

    def bytes(self) -> Counter[str]:
        """Return the lengths of all broadcasts, by part."""
        sizes: Counter[str] = Counter()
        for one in self.broadcasts:
            sizes += bytes_by_part(one.dialect, one.value())
        return sizes

    def participants_lately(self) -> set[str]:
        """Return the recently active participants."""
        edge = self.end - 600_000
        return {one.sender for one in self.first_copies if one.at >= edge} - {""}

    def epoch_messages_max(self) -> int:
        """Return the most frames of one participant in the last completed epoch."""
        last = (START_MS + self.end) // EPOCH_MS - 1
        sent = Counter(
            one.sender
            for one in self.first_copies
            if one.sender and (START_MS + one.clock) // EPOCH_MS == last
        )
        return max(sent.values(), default=0)

    def bloom_worst(self) -> tuple[int, int, int] | None:
        """Return bits set, size and hashes of the fullest of the latest filters."""
        senders = {one.sender for one in self.first_copies}
        latest = [newest[-1] for sender in senders if (newest := self.newest(sender))]
        lately = [one for one in latest if one.at >= self.end - 600_000]
        if not lately:
            return None
        # Of equal ones the larger.
        worst = max(lately, key=lambda one: (_rate(one), _shape(one)[1]))
        return worst.bits_set(), *_shape(worst)[1:]

    # Section 8.

    @functools.cache  # noqa: B019
    def spans(self) -> list[Span]:
        """Return all causes of the verdict."""
        return [
            *self._spans_of_gaps(),
            *self._spans_of_deliveries(),
            *self._spans_of_messages(),
            *self._spans_of_repairs(),
            *self._spans_of_filters(),
        ]

    def _spans_of_gaps(self) -> Iterator[Span]:
        for message_id in {i for one in self.broadcasts for i in one.history()}:
            gap, opening = self.gap(message_id), self.opening(message_id)
            if gap is None or opening is None:
                continue
            deadline = opening.clock + 300_000
            first = self._first_copy(message_id)
            arrival = after(self.end) if first is None else first.moment
            yield Span(
                "gap", after(opening.clock + 2_000), min(arrival, after(deadline))
            )
            if gap[0] == "lost":
                yield Span(
                    "lost", after(deadline), min(arrival, out_of_window(deadline))
                )

    def _spans_of_deliveries(self) -> Iterator[Span]:
        for one in self.deliveries():
            if one.lost is not None:
                ends = out_of_window(one.lost.clock)
                if one.shown is not None:
                    ends = min(ends, one.shown.moment)
                yield Span("lost", one.lost.moment, ends)
            elif one.outcome == "recovered":
                assert one.shown is not None
                ends = out_of_window(one.shown.clock)
                yield Span("recovered", one.shown.moment, ends)

    def _spans_of_messages(self) -> Iterator[Span]:
        for one in self.broadcasts:
            if one.is_content:
                yield Span("content", one.moment, out_of_window(one.clock))
        for m in self.messages:
            deadline = m.clock + 120_000
            # Deadlines lie in the window to the whole second, rounded up.
            second = -(-(START_MS + deadline) // 1_000) * 1_000 - START_MS
            fate = "missed" if self.fate(m) == "unacknowledged" else "met"
            yield Span(fate, after(deadline), out_of_window(second))

    def _spans_of_repairs(self) -> Iterator[Span]:
        for message_id in {i for one in self.broadcasts for i in one.requests()}:
            _, expired, _ = self.episodes(message_id)
            for end in expired:
                yield Span("expired", after(end), out_of_window(end))

    def _spans_of_filters(self) -> Iterator[Span]:
        for sender in {one.sender for one in self.first_copies}:
            newest = self.newest(sender)
            for one, next_one in itertools.zip_longest(newest, newest[1:]):
                ends = out_of_window(one.at)
                if next_one is not None:
                    ends = min(ends, next_one.moment)
                if _rate(one) > 0.01:
                    yield Span("saturated", one.moment, ends)

    def verdict_at(self, moment: Moment) -> tuple[str, str]:
        """Return the verdict and its reason."""
        if not self.seen or moment < (self.seen[0].clock + 30_000, -1):
            return "warming_up", "warming_up"
        standing = Counter(
            span.what for span in self.spans() if span.begins <= moment < span.ends
        )
        if standing["lost"]:
            return "failing", "lost"
        missed = standing["missed"]
        if missed > 0.05 * (missed + standing["met"]):
            return "failing", "unacknowledged"
        if standing["gap"] or standing["recovered"]:
            return "degraded", "recovering"
        if missed:
            return "degraded", "unacknowledged"
        if standing["expired"]:
            return "degraded", "repair_expired"
        if standing["saturated"]:
            return "degraded", "bloom_saturated"
        return ("ok", "ok") if standing["content"] else ("quiet", "quiet")

    def last_moment(self) -> Moment:
        """Return the end, after every frame before it."""
        return self.end, self.seen[-1].place if self.seen else -1

    def verdict_since(self) -> int | None:
        """Return the clock at which the verdict last changed; None before a frame."""
        if not self.seen:
            return None
        first = self.seen[0]
        moments = {first.moment, (first.clock + 30_000, -1)}
        for span in self.spans():
            moments |= {span.begins, span.ends}
        since, verdict = first.clock, ""
        for moment in sorted(moments):
            if moment[0] <= self.end and self.verdict_at(moment)[0] != verdict:
                since, verdict = moment[0], self.verdict_at(moment)[0]
        return since

    # Incidents.

    def incidents(self) -> set[tuple[str, str, frozenset[str]]]:
        """Return kind, message id and lacking participants of open incidents."""
        named = {i for one in self.broadcasts for i in one.history()}
        nobody: frozenset[str] = frozenset()
        lost = {
            ("lost", i, nobody)
            for i in named
            if (gap := self.gap(i)) is not None
            and gap[0] == "lost"
            and self._first_copy(i) is None
        }
        unacknowledged = {
            ("unacknowledged", m.message_id, nobody)
            for m in self.messages
            if self.fate(m) == "unacknowledged" and self.acknowledged_at(m) is None
        }
        lacking: dict[str, set[str]] = {}
        for one in self.deliveries():
            if one.lost is not None and one.shown is None:
                lacking.setdefault(one.message.message_id, set()).add(one.participant)
        undelivered = {("undelivered", i, frozenset(p)) for i, p in lacking.items()}
        return lost | unacknowledged | undelivered


def _shape(one: Seen) -> tuple[Dialect, int, int]:
    """Return dialect, bits in use and hashes of a frame's readable filter."""
    filter_ = one.filter()
    assert filter_ is not None
    return one.dialect, filter_.m_bits, filter_.k


def _rate(one: Seen) -> float:
    """Return the false-positive rate of a frame's readable filter."""
    _, m_bits, k = _shape(one)
    return (one.bits_set() / m_bits) ** k


def histogram(durations: Any) -> tuple[list[int], int]:
    """Return counts per bucket, the open one last, and the sum."""
    values = list(durations)
    places = [sum(bound < value for bound in BOUNDS_MS) for value in values]
    return [places.count(i) for i in range(len(BOUNDS_MS) + 1)], sum(values)
