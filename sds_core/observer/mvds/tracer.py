"""Traces MVDS messages: lists each message's records, and conclusions about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.incidents import GroupIncident, Incident
from sds_core.observer.journal import Journal, Note
from sds_core.observer.mvds.copies import Copy
from sds_core.observer.mvds.digest import (
    SeenPayload,
    SeenPeer,
    SeenRecord,
    ShardDigest,
)
from sds_core.observer.mvds.frame import PeerPayload
from sds_core.observer.mvds.shard_view import ShardView, in_order
from sds_core.observer.mvds.split import RecordType, shard_of, split
from sds_core.observer.record import TapHeaders
from sds_core.observer.settings import ObserverSettings
from sds_core.observer.tracing import (
    Evidence,
    Person,
    Query,
    Rule,
    Step,
    StepLog,
    Subject,
)

RULES: Mapping[str, Rule] = {
    "unacknowledged": Rule(
        "unacknowledged",
        "14",
        "the receiver sent a payload after the message, but did not acknowledge the "
        "message by the deadline",
    ),
    "unanswered_request": Rule(
        "unanswered_requests", "14", "no MESSAGE answered a REQUEST by the deadline"
    ),
    "unrequested_offer": Rule(
        "unrequested_offers", "14", "no REQUEST followed an OFFER by the deadline"
    ),
    "resolved": Rule("resolved", "14", "acknowledged after the deadline"),
    "unwitnessed": Rule(
        "unwitnessed",
        "14",
        "not acknowledged, but no fault: the receiver sent no payload after the "
        "message, or showed that it holds the message",
    ),
    "acknowledged_in_time": Rule(
        "acknowledged_in_time", "14", "acknowledged before the deadline"
    ),
}
"""For each kind of note in a view's journal, how a trace describes it.

The gravest kind is first.
"""

UNDONE: Mapping[str, Sequence[str]] = {"unacknowledged": ("resolved",)}
_MOST_EXCHANGES = 1_000
"""Maximum number of combinations of record type, sender and receiver that a trace shows
for one message."""


class MvdsTracing:
    """Finds and traces MVDS messages; see `Tracing`."""

    is_keyed = False

    def may_concern(self, value: bytes, query: Query) -> bool:
        """Whether the value is not empty.

        The value cannot be searched for the id of a message, because a MESSAGE does not
        contain its own id. Every value that is not empty may therefore match.
        """
        return len(value) > 0

    def subjects(
        self, frame: PeerPayload, headers: TapHeaders, query: Query
    ) -> Iterator[Subject]:
        """Yield the messages that the query selects from a payload."""
        if query.sender not in ("", frame.sender):
            return
        ids = {one.lower() for one in query.message_ids}
        for _, part in split(frame):
            for record in part.records:
                message_id = record.message_id.hex()
                is_sent = record.type is RecordType.MESSAGE
                if is_sent if query.sender else message_id in ids:
                    yield Subject(record.group, message_id)

    def tracer(
        self, subjects: Sequence[Subject], settings: ObserverSettings
    ) -> GroupTracer:
        """Create a tracer for messages of one group."""
        return GroupTracer(subjects, settings)


class GroupTracer:
    """Collects evidence about messages from the views of their ids; see `Tracer`."""

    def __init__(self, subjects: Sequence[Subject], settings: ObserverSettings) -> None:
        self._messages = {
            fingerprint(bytes.fromhex(one.message_id)): _Message(one, settings)
            for one in subjects
        }
        self._journal = Journal(set(self._messages))
        self._observers: set[str] = set()
        self._views = {
            shard_of(key): ShardView(settings, journal=self._journal)
            for key in self._messages
        }

    def take(self, digests: Mapping[str, Sequence[ShardDigest]], clock_ms: int) -> None:
        """Pass digests to the views of the traced ids; see `Tracer`."""
        for name, view in self._views.items():
            seen = in_order(digests.get(name, ()))
            for event in view.follow(self._passing(name, seen), clock_ms):
                if isinstance(event, GroupIncident):
                    key = fingerprint(bytes.fromhex(event.incident.message_id))
                    if (message := self._messages.get(key)) is not None:
                        message.incident = event.incident
            self._take_notes()

    def evidence(self) -> list[Evidence]:
        """See `Tracer`."""
        observers = sorted(self._observers)
        return [one.evidence(observers) for one in self._messages.values()]

    def _passing(
        self, name: str, seen: Iterable[SeenPeer | SeenPayload]
    ) -> Iterator[SeenPeer | SeenPayload]:
        for one in seen:
            yield one
            if isinstance(one, SeenPayload):
                for key, message in self._messages.items():
                    if shard_of(key) == name:
                        message.heard(one)
                # If the payload is another tap's copy, or a duplicate, its records were
                # already read.
                if self._journal.copy is Copy.FIRST:
                    self._read(one)
            self._take_notes()

    def _read(self, payload: SeenPayload) -> None:
        if payload.observer:
            self._observers.add(payload.observer)
        for record in payload.records:
            message = self._messages.get(record.key)
            if message is not None:
                message.carried(payload, record, self._journal.is_old)

    def _take_notes(self) -> None:
        for note in self._journal.take():
            self._messages[note.key].note(note)


class _Message:
    def __init__(self, subject: Subject, settings: ObserverSettings) -> None:
        self.incident: Incident | None = None
        self._subject = subject
        self._log = StepLog(RULES)
        self._people: dict[str, Person] = {}
        self._facts: dict[str, Any] = {}
        self._appeared_ms: int | None = None
        # For each combination of record type, sender, receiver and text about lateness:
        # time of the latest such record, and number of such records.
        self._sent: dict[tuple[RecordType, str, str, str], tuple[int, int]] = {}
        minutes = settings.horizon_ms / 60_000
        self._late = f", more than {minutes:g} minutes late: it changes no conclusion"

    def heard(self, payload: SeenPayload) -> None:
        if (person := self._people.get(payload.sender_name)) is not None:
            person.heard(payload.time_ms, self._appeared_ms)

    def carried(self, payload: SeenPayload, record: SeenRecord, is_old: bool) -> None:
        sender, receiver = payload.sender_name, payload.receiver_name
        at_ms, tap = payload.time_ms, payload.observer
        if self._appeared_ms is None:
            self._appeared_ms = at_ms
        if record.type is RecordType.MESSAGE:
            self._subject = self._subject._replace(channel=record.group)
            self._facts.setdefault("sender", sender)
            self._facts.setdefault("first_copy_ms", at_ms)
            self._facts.setdefault("is_ephemeral", record.is_ephemeral)
        late = self._late if is_old else ""
        key = record.type, sender, receiver, late
        if key not in self._sent and len(self._sent) >= _MOST_EXCHANGES:
            self._log.omitted += 1
            return
        for name in (sender, receiver):
            if name not in self._people:
                self._people[name] = Person(name)
                if name == sender:
                    self._people[name].heard(at_ms, self._appeared_ms)
        _, times = self._sent.get(key, (0, 0))
        self._sent[key] = at_ms, times + record.times
        if not times:
            what = record.type.name.lower()
            text = f"{record.type.name} of the message{late}"
            self._log.add(Step(at_ms, what, text, sender, receiver, tap))
        person = self._people[sender]
        person.requests += record.type is RecordType.REQUEST
        if person.held_ms is None and record.type is not RecordType.REQUEST:
            person.held_ms = at_ms

    def note(self, note: Note) -> None:
        self._log.note(note)
        if note.what in RULES and (person := self._people.get(note.who)) is not None:
            person.outcomes.append(note.what)

    def evidence(self, observers: Sequence[str]) -> Evidence:
        conclusions, summary = self._log.conclusions(UNDONE)
        repeated = [
            Step(
                at_ms,
                "repeated",
                f"{type_.name} for the last time so far, {times} in all{late}",
                sender,
                receiver,
            )
            for (type_, sender, receiver, late), (at_ms, times) in self._sent.items()
            if times > 1
        ]
        return Evidence(
            self._subject,
            self._facts,
            self._appeared_ms,
            *self._log.steps(repeated),
            list(self._people.values()),
            [self.incident] if self.incident is not None else [],
            conclusions,
            summary,
            list(self._unknown()),
            observers,
        )

    def _unknown(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        if self._appeared_ms is None:
            return
        if "sender" not in self._facts:
            yield "no tap showed a MESSAGE: group and content are not known", ()
        else:
            yield (
                "MVDS does not say who made a message: the sender is the first seen",
                (),
            )
        silent = tuple(
            one.name for one in self._people.values() if one.heard_after_ms is None
        )
        if silent:
            yield "no payload since shows whether it received the message", silent
