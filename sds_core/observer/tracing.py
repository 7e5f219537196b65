"""Interfaces of a trace, which shows what happened to messages (docs/trace.md).

A protocol with traces provides a `Tracing`. Its tracer reads the digests of the
protocol's views, and runs the views. Steps of a trace are evidence from frames;
conclusions are notes in the views' journals.
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
"""Maximum number of steps in a trace. A sender can name a message in many frames."""

_WAKU_HASH = re.compile("0[xX][0-9a-fA-F]{64}")

_FrameIn = TypeVar("_FrameIn", contravariant=True)


class Query(NamedTuple):
    """The messages to search for; exactly one attribute is set.

    Attributes:
        message_ids: Ids of messages, or Waku hashes of copies (``0x`` and 64 digits).
        sender: Participant whose messages are all selected.
    """

    message_ids: frozenset[str] = frozenset()
    sender: str = ""

    @property
    def waku_hashes(self) -> frozenset[str]:
        """The ids that may be Waku hashes, in lower case."""
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
    """One fact about a message, shown by a frame, a tap or a deadline.

    Attributes:
        at_ms: Event time, Unix ms.
        what: Kind of the step, in one word (docs/trace.md).
        text: What happened, without the names of participants.
        by: Participant that the step concerns; empty if no participant is known.
        to: Receiving peer, if the protocol has peers.
        tap: Tap that captured the step; empty for a conclusion of the monitor.
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
    """What frames show about one participant and the message. Times are in Unix ms.

    Attributes:
        name: Participant id.
        heard_before_ms: Time of the participant's latest frame before the message
            appeared.
        heard_after_ms, heard_last_ms: Times of the participant's first and latest frame
            since the message appeared.
        silent_ms: The participant's longest silence since `heard_before_ms`.
        named_ms: Time of the participant's first frame whose history names the message.
        named: Number of the participant's frames whose history names the message.
        held_ms: Time of the participant's first frame whose filter holds the message.
        lacked_ms, lacked_last_ms: Times of the participant's first and latest frame
            whose filter lacks the message. Frames before `appeared_ms` do not count.
        requests: Number of the participant's repair requests for the message.
        outcomes: Conclusions about the participant, in order of time.
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
        """Record a frame of the participant; the message appeared at `appeared_ms`."""
        before_ms = self.heard_last_ms or self.heard_before_ms
        if appeared_ms is None or at_ms < appeared_ms:
            self.heard_before_ms = at_ms
            return
        if before_ms is not None:
            self.silent_ms = max(self.silent_ms, at_ms - before_ms)
        if self.heard_after_ms is None:
            self.heard_after_ms = at_ms
        self.heard_last_ms = at_ms


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
    """One conclusion of the view, with all participants that it concerns.

    Attributes:
        at_ms: Event time of the first note, Unix ms.
        figure, section, text: See `Rule`.
    """

    at_ms: int
    figure: str
    section: str
    text: str
    names: tuple[str, ...] = ()


class Evidence(msgspec.Struct, frozen=True):
    """Everything that a tracer found about one message.

    Attributes:
        facts: Known facts of the message's first copy, by name.
        appeared_ms: Event time of the first frame that contains or names the message,
            Unix ms. None if no record concerned the message.
        steps: Steps in order of time. The maximum number of steps is about twice
            `MOST_STEPS`.
        people: The sender, then the other participants in order of appearance.
        incidents: Incidents of the message, each in its current form.
        conclusions: Conclusions of the view, in order of time.
        summary: The most important conclusion; None if none exists.
        unknown: Sentences about what the trace cannot show. Each sentence has the
            participants that are listed after it.
        observers: Taps that mirrored the channel.
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

        `clock_ms` is the maximum record time so far, Unix ms.
        """

    def evidence(self) -> list[Evidence]:
        """Return the current evidence for each message.

        The order is that of the argument `subjects` of `Tracing.tracer`.
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

        If the result is False, the value does not match. The test is fast. It ignores
        Waku hashes, which are not in the value.
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
        """Add a conclusion of the view as a step with these `names`."""
        rule = self._rules.get(note.what)
        if rule is None:
            return
        self._notes.setdefault(note.what, []).append(note)
        self.add(Step(note.time_ms, note.what, rule.text, note.who, names=names))

    def steps(self, more: Sequence[Step] = ()) -> tuple[list[Step], int]:
        """Return all steps in order of time, and the number of omitted steps.

        `more` has further steps, of which at most `MOST_STEPS` are returned.
        """
        steps = sorted([*self._steps, *more[:MOST_STEPS]], key=lambda one: one.at_ms)
        return steps, self.omitted + len(more[MOST_STEPS:])

    def has_step(self, prefix: str) -> bool:
        """Whether the kind of any step begins with `prefix`."""
        return any(step.what.startswith(prefix) for step in self._steps)

    def conclusions(
        self, undone: Mapping[str, Sequence[str]]
    ) -> tuple[list[Conclusion], Conclusion | None]:
        """Return all conclusions in order of time, and the gravest valid conclusion.

        `undone` maps each note to the notes that revoke it for the same participant. A
        revoked conclusion is not valid.
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
