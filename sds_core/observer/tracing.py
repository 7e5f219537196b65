"""Interfaces of a trace, which shows what happened to messages (docs/trace.md).

A protocol whose messages can be traced provides a `Tracing`. The `Tracer` of the
protocol reads the digests of the protocol's views, and runs the views. The steps of a
trace are evidence from frames, and conclusions that the views note in their journals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from sds_core.observer.incidents import Incident
from sds_core.observer.journal import Note
from sds_core.observer.record import TapHeaders
from sds_core.observer.settings import ObserverSettings

MOST_STEPS = 500
"""Maximum number of steps that a `StepLog` stores for one message.

Without a limit, a sender could add steps by naming a message in any number of frames.
"""

_WAKU_HASH = re.compile("0[xX][0-9a-fA-F]{64}")

_FrameIn = TypeVar("_FrameIn", contravariant=True)


class Query(NamedTuple):
    """The messages to search for; exactly one attribute is set.

    Attributes:
        message_ids: Ids of messages. Instead of an id, an element may be the Waku hash
            of a copy of the message (``0x`` and 64 hexadecimal digits).
        sender: Id of a participant. All messages of this sender are selected.
    """

    message_ids: frozenset[str] = frozenset()
    sender: str = ""

    @property
    def waku_hashes(self) -> frozenset[str]:
        """Those `message_ids` that have the form of a Waku hash, in lower case."""
        return frozenset(
            one.lower() for one in self.message_ids if _WAKU_HASH.fullmatch(one)
        )


class Subject(NamedTuple):
    """A message to trace.

    Attributes:
        channel: Name of the message's channel or group; empty while unknown.
    """

    channel: str
    message_id: str


class Step(msgspec.Struct, frozen=True):
    """One fact about a message. A frame or an expired deadline shows the fact.

    Attributes:
        at_ms: Event time, Unix ms.
        what: Kind of the step, in one word (docs/trace.md).
        text: What happened, without the names of participants.
        by: Participant that the step concerns; empty if no participant is known.
        to: Receiving peer, if the protocol has peers.
        tap: Tap that captured the frame; empty if the tap is unknown, or if the step is
            a conclusion of the monitor.
        names: Participants whose names are shown after the text.
    """

    at_ms: int
    what: str
    text: str
    by: str = ""
    to: str = ""
    tap: str = ""
    names: tuple[str, ...] = ()


class Person(msgspec.Struct):
    """What frames show about one participant and the traced message. Times are Unix ms.

    Attributes:
        name: Participant id.
        heard_before_ms: Time of the participant's latest frame before the message
            appeared.
        heard_after_ms, heard_last_ms: Times of the participant's first and latest frame
            since the message appeared.
        silent_ms: Maximum time between two consecutive frames of the participant, from
            the frame at `heard_before_ms` on.
        named_ms: Time of the participant's first frame whose history names the message.
        named: Number of the participant's frames whose history names the message.
        held_ms: Time of the participant's first frame whose filter holds the message.
        lacked_ms, lacked_last_ms: Times of the participant's first and latest frame
            whose filter lacks the message. Frames from before the message appeared do
            not count.
        requests: Number of the participant's repair requests for the message.
        outcomes: Kinds of conclusions about the participant, in order of time.
    """

    name: str
    heard_before_ms: int | None = None
    heard_after_ms: int | None = None
    heard_last_ms: int | None = None
    silent_ms: int = 0
    named_ms: int | None = None
    named: int = 0
    held_ms: int | None = None
    lacked_ms: int | None = None
    lacked_last_ms: int | None = None
    requests: int = 0
    outcomes: list[str] = []

    def heard(self, at_ms: int, appeared_ms: int | None) -> None:
        """Record a frame of the participant; the message appeared at `appeared_ms`.

        The frame may be late, that is, earlier than the previous frame.
        """
        before_ms = self.heard_last_ms or self.heard_before_ms
        if appeared_ms is None or at_ms < appeared_ms:
            self.heard_before_ms = max(at_ms, self.heard_before_ms or at_ms)
            return
        if before_ms is not None:
            self.silent_ms = max(self.silent_ms, at_ms - before_ms)
        self.heard_after_ms = min(at_ms, self.heard_after_ms or at_ms)
        self.heard_last_ms = max(at_ms, self.heard_last_ms or at_ms)


class Rule(NamedTuple):
    """How a trace describes one kind of conclusion.

    Attributes:
        figure: Name of the figure that counts conclusions of this kind
            (docs/figures.md).
        section: Section of docs/figures.md that has the rule.
        text: The conclusion as a sentence. The names of the concerned participants
            follow the sentence.
    """

    figure: str
    section: str
    text: str


class Conclusion(msgspec.Struct, frozen=True):
    """One conclusion of a view about a message.

    Attributes:
        at_ms: Event time of the first note in the journal with this conclusion, Unix
            ms.
        figure, section, text: See `Rule`.
        names: All participants that the conclusion concerns.
    """

    at_ms: int
    figure: str
    section: str
    text: str
    names: tuple[str, ...] = ()


class Evidence(msgspec.Struct, frozen=True):
    """Everything that a tracer found about one message.

    Attributes:
        facts: Known facts about the message, such as its sender, by name of the fact.
        appeared_ms: Event time of the first frame that contains or names the message,
            Unix ms. None if no record concerned the message.
        steps: Steps in order of time; at most twice `MOST_STEPS`.
        people: Participants in order of appearance, except that SDS lists the sender
            first.
        incidents: The newest state of each incident of the message.
        conclusions: All conclusions about the message, in order of time.
        summary: The gravest conclusion that no other conclusion revokes; None if no
            such conclusion exists.
        unknown: Sentences about what the trace cannot show, each with the participants
            whose names are shown after the sentence.
        observers: Taps that showed the message's channel or group.
    """

    subject: Subject
    facts: Mapping[str, Any]
    appeared_ms: int | None
    steps: Sequence[Step]
    omitted: int
    people: Sequence[Person]
    incidents: Sequence[Incident]
    conclusions: Sequence[Conclusion]
    summary: Conclusion | None
    unknown: Sequence[tuple[str, tuple[str, ...]]]
    observers: Sequence[str]


class Tracer(Protocol):
    """Collects what happened to some messages of one channel or group."""

    def take(self, digests: Mapping[str, Sequence[Any]], clock_ms: int) -> None:
        """Process the next digests of each view, in any order, then advance the clock.

        `clock_ms` is the maximum record time so far in the traced part of the topic,
        Unix ms.
        """

    def evidence(self) -> list[Evidence]:
        """Return the current evidence for each message.

        The messages are in the order in which `Tracing.tracer` received them.
        """


class Tracing(Protocol[_FrameIn]):
    """Finds and traces messages of a protocol.

    Attributes:
        is_keyed: Whether the key of each record is the name of the record's channel.
            If not, the records of a message may be in any partition.
    """

    @property
    def is_keyed(self) -> bool:
        """See the class."""

    def may_concern(self, value: bytes, query: Query) -> bool:
        """Whether a record's value may match a query.

        If the result is False, the value does not match the query. The test is fast,
        because it does not decode the value. The test ignores Waku hashes, because the
        Waku hash of a record is not in the value.
        """

    def subjects(
        self, frame: _FrameIn, headers: TapHeaders, query: Query
    ) -> Iterable[Subject]:
        """Return the messages of a frame that match the query."""

    def tracer(self, subjects: Sequence[Subject], settings: ObserverSettings) -> Tracer:
        """Make a tracer for messages of one channel or group."""


class StepLog:
    """The steps and the conclusions of one message."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        self._steps: list[Step] = []
        self._notes: dict[str, list[Note]] = {}
        self.omitted = 0

    def add(self, step: Step) -> None:
        """Add a step. If `MOST_STEPS` steps exist, only count the step as omitted."""
        if len(self._steps) < MOST_STEPS:
            self._steps.append(step)
        else:
            self.omitted += 1

    def note(self, note: Note, names: tuple[str, ...] = ()) -> None:
        """Add a conclusion from a view's journal, as a step with these `names`."""
        rule = self._rules.get(note.what)
        if rule is None:
            return
        self._notes.setdefault(note.what, []).append(note)
        self.add(Step(note.time_ms, note.what, rule.text, note.who, names=names))

    def steps(self, more: Sequence[Step] = ()) -> tuple[list[Step], int]:
        """Return all steps in order of time, and the number of omitted steps.

        `more` has steps that were not added to the log. If `more` has more than
        `MOST_STEPS` steps, the method omits the later ones.
        """
        steps = sorted([*self._steps, *more[:MOST_STEPS]], key=lambda one: one.at_ms)
        return steps, self.omitted + len(more[MOST_STEPS:])

    def has_step(self, prefix: str) -> bool:
        """Whether any step has a kind (`Step.what`) that begins with `prefix`."""
        return any(step.what.startswith(prefix) for step in self._steps)

    def conclusions(
        self, undone: Mapping[str, Sequence[str]]
    ) -> tuple[list[Conclusion], Conclusion | None]:
        """Return all conclusions in order of time, and the gravest of the valid ones.

        `undone` maps a kind of notes to the kinds that revoke it. A note revokes a
        conclusion only for the participant of the note. If the conclusion is revoked
        for all of its participants, it is not valid.
        """
        by_what = {
            what: self._conclusion(what, notes) for what, notes in self._notes.items()
        }
        holding = []
        for what in [one for one in self._rules if one in by_what]:
            back = [by_what[one] for one in undone.get(what, ()) if one in by_what]
            gone = {name for one in back for name in one.names}
            names = tuple(name for name in by_what[what].names if name not in gone)
            if names or not back:
                holding.append(msgspec.structs.replace(by_what[what], names=names))
        in_order = sorted(by_what.values(), key=lambda one: one.at_ms)
        return in_order, holding[0] if holding else None

    def _conclusion(self, what: str, notes: Sequence[Note]) -> Conclusion:
        names = tuple(dict.fromkeys(one.who for one in notes if one.who))
        return Conclusion(notes[0].time_ms, *self._rules[what], names)
