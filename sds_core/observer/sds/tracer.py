"""Traces messages of a channel: what frames show, and what the view concludes."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.incidents import Incident
from sds_core.observer.journal import Journal, Note
from sds_core.observer.record import TapHeaders
from sds_core.observer.rule_settings import rule_settings
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.copies import Copy
from sds_core.observer.sds.digest import ChannelDigest
from sds_core.observer.sds.limits import MOST_SEGMENT_SETS
from sds_core.observer.sds.seen_frames import Named, SeenFrame, frames_of
from sds_core.observer.sds.segment_rows import SeenSegment
from sds_core.observer.sds.timing import may_respond, request_due_ms
from sds_core.observer.sds.trace_rules import RULES, UNDONE
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.tracing import (
    Evidence,
    Person,
    Query,
    Step,
    StepLog,
    Subject,
)
from sds_core.wire import Dialect, Frame, FrameKind

_TIMED = frozenset({"response_explained"})
_RATE_OF_NOTE = 1e-6
"""If a filter's false-positive rate is higher, a trace states that chance is possible.

The filter may then seem to hold a message that was never added.
"""


class SdsTracing:
    """Finds and traces messages of SDS; see `Tracing`."""

    is_keyed = True

    def may_concern(self, value: bytes, query: Query) -> bool:
        """Whether a record's value contains the query's sender or a queried message id.

        Frames contain senders and ids as plain UTF-8, so the value is not decoded.
        """
        texts = (query.sender,) if query.sender else query.message_ids
        return any(text.encode() in value for text in texts)

    def subjects(
        self, frame: Frame, headers: TapHeaders, query: Query
    ) -> Iterator[Subject]:
        """Yield the messages in a frame that match the query."""
        channel, own = frame.channel_id, frame.message_id
        is_content = frame.kind is FrameKind.CONTENT
        if query.sender:
            if is_content and frame.sender_id == query.sender:
                yield Subject(channel, own)
            return
        named = (
            one.message_id for one in (*frame.causal_history, *frame.repair_request)
        )
        for message_id in query.message_ids.intersection((own, *named)):
            yield Subject(channel, message_id)
        waku_hash = f"0x{headers.waku_hash_bytes.hex()}"
        if is_content and waku_hash in query.waku_hashes:
            yield Subject(channel, own)

    def tracer(
        self, subjects: Sequence[Subject], settings: ObserverSettings
    ) -> ChannelTracer:
        """Make a tracer for messages of one channel."""
        return ChannelTracer(subjects, settings)


class ChannelTracer:
    """Runs a channel's view, and collects evidence on the traced messages.

    See `Tracer`.
    """

    def __init__(self, subjects: Sequence[Subject], settings: ObserverSettings) -> None:
        self._messages = {
            fingerprint(one.message_id): _Message(one, settings) for one in subjects
        }
        self._journal = Journal(set(self._messages))
        self._view = ChannelView(settings, journal=self._journal)
        self._rules = rule_settings(settings)
        # For each payload, its segments. They are stored even if none of them is a
        # traced message yet, because a traced message may bring a further segment.
        self._segments: OrderedDict[int, dict[tuple[bool, int], SeenSegment]] = (
            OrderedDict()
        )

    def take(
        self, digests: Mapping[str, Sequence[ChannelDigest]], clock_ms: int
    ) -> None:
        """See `Tracer`."""
        frames = heapq.merge(
            *(frames_of(one) for some in digests.values() for one in some),
            key=lambda frame: frame.order,
        )
        for event in self._view.follow(self._passing(frames), clock_ms):
            if isinstance(event, Incident):
                message = self._messages.get(fingerprint(event.message_id))
                if message is not None:
                    message.incidents[event.kind] = event
        self._take_notes(None)

    def evidence(self) -> list[Evidence]:
        """See `Tracer`."""
        return [
            one.evidence(
                self._segments.get(one.payload, {}), self._view.totals.observers
            )
            for one in self._messages.values()
        ]

    def _passing(self, frames: Iterable[SeenFrame]) -> Iterator[SeenFrame]:
        """Pass on each frame to the view; then collect the evidence in the frame."""
        for frame in frames:
            segment = frame.segment
            own = self._messages.get(frame.named.fingerprint)
            if segment is not None:
                if own is not None:
                    own.payload = segment.payload
                    self._journal.keys.add(segment.payload)
                places = self._segments.setdefault(segment.payload, {})
                places.setdefault((segment.is_parity, segment.place), segment)
                if len(self._segments) > MOST_SEGMENT_SETS + len(self._messages):
                    watched = self._journal.keys
                    del self._segments[
                        next(key for key in self._segments if key not in watched)
                    ]
            yield frame
            copy = self._journal.copy
            if copy is not Copy.DUPLICATE:
                if own is not None:
                    own.shown(frame, copy is Copy.REPLICA)
                if copy is Copy.BROADCAST:
                    self._read(frame)
            self._take_notes(frame)

    def _read(self, frame: SeenFrame) -> None:
        messages = self._messages
        for named in frame.history:
            if (message := messages.get(named.fingerprint)) is not None:
                message.named(frame, named)
        for named, is_held in frame.requests:
            if (message := messages.get(named.fingerprint)) is not None:
                due_ms = None
                if frame.dialect is Dialect.SPEC and frame.sender:
                    due_ms = request_due_ms(
                        self._rules, frame.sender, named.message_id, 0
                    )
                message.requested(frame, is_held, due_ms)
        for message in messages.values():
            message.heard(frame)
            if frame.filter is not None and frame.sender:
                message.searched(frame, self._journal.is_first)

    def _take_notes(self, frame: SeenFrame | None) -> None:
        for note in self._journal.take():
            for key, message in self._messages.items():
                if note.key in (key, message.payload):
                    message.note(note, self._responders(note, frame))

    def _responders(self, note: Note, frame: SeenFrame | None) -> tuple[str, ...]:
        if note.what not in _TIMED or frame is None:
            return ()
        message_id = frame.named.message_id
        waits_ms = [
            note.time_ms - one for one in self._view.model.requests_ms(note.key)
        ]
        return tuple(
            name
            for name in dict.fromkeys((frame.sender, *self._view.model.names()))
            if may_respond(self._rules, name, frame.sender, message_id, waits_ms)
        )


class _Message:
    def __init__(self, subject: Subject, settings: ObserverSettings) -> None:
        self.subject = subject
        self.incidents: dict[str, Incident] = {}
        self.payload = 0
        self._settings = settings
        self._log = StepLog(RULES)
        self._people: dict[str, Person] = {}
        self._appeared_ms: int | None = None
        self._facts: dict[str, Any] = {}
        self._taps: set[tuple[str, bytes]] = set()
        self._rate = 0.0
        self._clock_ms = 0

    def shown(self, frame: SeenFrame, is_replica: bool) -> None:
        self._appear(frame.time_ms)
        if "first_copy_ms" not in self._facts:
            self._facts |= {
                "sender": frame.sender or None,
                "kind": frame.kind.value,
                "dialect": frame.dialect.value,
                "first_copy_ms": frame.time_ms,
                "lamport": frame.lamport,
                "waku_hash": _hex(frame.waku_hash_bytes),
                "segment": _segment_object(frame.segment),
            }
        tap = frame.observer, frame.waku_hash_bytes
        if is_replica and tap in self._taps:
            return
        text = (
            "a further copy" if is_replica else "sent again" if self._taps else "sent"
        )
        self._taps.add(tap)
        if frame.waku_hash_bytes:
            text += f", Waku hash {_hex(frame.waku_hash_bytes)}"
        what = "copy" if is_replica else "broadcast"
        tap_name = frame.observer or "a tap"
        self._log.add(Step(frame.time_ms, what, text, frame.sender, tap=tap_name))

    def heard(self, frame: SeenFrame) -> None:
        self._clock_ms = frame.clock_ms
        if frame.sender and (person := self._person(frame.sender)) is not None:
            person.heard(frame.time_ms, self._appeared_ms)

    def named(self, frame: SeenFrame, named: Named) -> None:
        if frame.named.fingerprint == named.fingerprint:
            return
        self._appear(frame.time_ms)
        if named.sender:
            self._facts.setdefault("named_sender", named.sender)
        if named.hint:
            self._facts.setdefault("retrieval_hint", named.hint.hex())
        person = self._person(frame.sender)
        if person is None or person.named_ms is None:
            self._frame(frame, "named", "its causal history names the message")
        if person is not None:
            person.named += 1
            if person.named_ms is None:
                person.named_ms = frame.time_ms

    def requested(self, frame: SeenFrame, is_held: bool, wait_ms: int | None) -> None:
        self._appear(frame.time_ms)
        text = "requests the message"
        person = self._person(frame.sender)
        if person is not None:
            person.requests += 1
            if person.requests == 1 and wait_ms is not None:
                text += f", T_req {wait_ms / 1000:g} s after it can notice the gap"
        if is_held:
            text += ", although its own filter holds it"
        self._frame(frame, "requested", text)

    def searched(self, frame: SeenFrame, proves_lack: bool) -> None:
        if frame.filter is None or self._appeared_ms is None:
            return
        dialect = self._facts.get("dialect", frame.dialect.value)
        person = self._person(frame.sender)
        if person is None or dialect != frame.dialect.value:
            return
        if frame.sender in (self._facts.get("sender"), self._facts.get("named_sender")):
            return
        if frame.filter.contains(self.subject.message_id):
            if person.held_ms is None:
                person.held_ms = frame.time_ms
                rate = frame.filter.false_positive_rate()
                self._rate = max(self._rate, rate)
                self._frame(frame, "held", "its filter holds the message")
        elif proves_lack and frame.kind is not FrameKind.EPHEMERAL:
            if person.lacked_ms is None:
                person.lacked_ms = frame.time_ms
                self._frame(frame, "lacked", "its filter lacks the message")
            person.lacked_last_ms = frame.time_ms

    def note(self, note: Note, names: tuple[str, ...]) -> None:
        self._log.note(note, names)
        if note.what in RULES and note.who:
            person = self._person(note.who)
            if person is not None and note.what not in person.outcomes:
                person.outcomes.append(note.what)

    def evidence(
        self,
        segments: Mapping[tuple[bool, int], SeenSegment],
        observers: Sequence[str],
    ) -> Evidence:
        conclusions, summary = self._log.conclusions(UNDONE)
        sender = self._facts.get("sender") or self._facts.get("named_sender")
        people = sorted(self._people.values(), key=lambda one: one.name != sender)
        facts = {
            name: value for name, value in self._facts.items() if value is not None
        }
        if segments:
            facts["segments"] = _segments_object(segments)
        return Evidence(
            self.subject,
            facts,
            self._appeared_ms,
            *self._log.steps(list(self._late_steps())),
            people,
            list(self.incidents.values()),
            conclusions,
            summary,
            list(self._unknown(people, sender)),
            observers,
        )

    def _late_steps(self) -> Iterator[Step]:
        for person in self._people.values():
            last_ms = person.lacked_last_ms
            if last_ms is not None and last_ms != person.lacked_ms:
                text = "its last filter so far that lacks the message"
                yield Step(last_ms, "lacked_last", text, person.name)
            returned_ms = person.heard_after_ms
            before_ms = person.heard_before_ms
            if before_ms is None or returned_ms is None:
                continue
            silent_ms = returned_ms - before_ms
            if silent_ms > self._settings.delivery_deadline_ms:
                text = f"speaks again after {silent_ms / 1000:,.0f} s of silence"
                yield Step(returned_ms, "returned", text, person.name)

    def _unknown(
        self, people: Sequence[Person], sender: str | None
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        if self._appeared_ms is None:
            return
        if "first_copy_ms" not in self._facts:
            yield "no tap showed the message: when it was sent is not known", ()
        elif not sender:
            yield "its frame names no sender: nothing acknowledges it", ()
        if self._rate > _RATE_OF_NOTE:
            text = (
                "a filter can seem to hold a message by chance, at most at a rate of "
                f"{self._rate:.2g} here; it never lacks one that was added"
            )
            yield text, ()
        silent = tuple(
            one.name
            for one in people
            if one.heard_after_ms is None and one.name != sender
        )
        if silent:
            yield "no frame since shows whether it received the message", silent
        horizon_ms = self._settings.horizon_ms
        if self._clock_ms > self._appeared_ms + horizon_ms:
            text = (
                f"the view follows a message for {horizon_ms / 60_000:g} minutes: "
                "later frames are evidence here, and change no figure"
            )
            yield text, ()
        if self._log.has_step("repair_"):
            yield "no frame says who answered a repair request", ()

    def _appear(self, time_ms: int) -> None:
        if self._appeared_ms is None:
            self._appeared_ms = time_ms

    def _person(self, name: str) -> Person | None:
        person = self._people.get(name)
        if person is None and name and len(self._people) < self._settings.followed:
            person = self._people[name] = Person(name)
        return person

    def _frame(self, frame: SeenFrame, what: str, text: str) -> None:
        step = Step(frame.time_ms, what, text, frame.sender, tap=frame.observer)
        self._log.add(step)


def _hex(value: bytes) -> str | None:
    return f"0x{value.hex()}" if value else None


def _segment_object(segment: SeenSegment | None) -> dict[str, Any] | None:
    if segment is None:
        return None
    return {"place": segment.place, "is_parity": segment.is_parity}


def _segments_object(
    segments: Mapping[tuple[bool, int], SeenSegment],
) -> dict[str, Any]:
    needed = max((one.data_count or 0 for one in segments.values()), default=0)
    data = sorted(place for is_parity, place in segments if not is_parity)
    parity = sorted(place for is_parity, place in segments if is_parity)
    return {
        "needed": needed or None,
        "seen": len(segments),
        "data": data,
        "parity": parity,
        "missing_data": [place for place in range(needed) if place not in data],
    }
