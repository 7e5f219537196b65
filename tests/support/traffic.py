"""Random traffic of one channel, as hypothesis strategies.

Participants send, hear each other or do not, ask for what they miss and answer; their
filters grow, drop ids and begin anew. One tap sees most of it, a second one copies of
it and some of it late.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis import strategies as st

from sds_core.observer.fingerprint import fingerprint
from sds_core.wire import (
    DEFAULT_PARAMETERS,
    BloomFilter,
    BloomParameters,
    Dialect,
    Frame,
    HistoryEntry,
)
from tests.support.frames import Entry, FrameFactory, Record

_SHORT_PAUSES_MS = (0, 1, 50, 250, 1_000, 1_999, 2_000, 2_001, 5_000, 5_001, 15_000)
PAUSES_MS = (
    *_SHORT_PAUSES_MS, *_SHORT_PAUSES_MS, *_SHORT_PAUSES_MS, 30_000, 30_001, 60_000,
    119_000, 120_000, 120_001, 135_000, 135_001, 140_000, 150_000, 180_000, 300_000,
    300_001,
)  # fmt: skip
"""Time between two frames: at and just behind what the model's limits are made of."""

_AFTER_MESSAGE_MS = (0,) * 30 + (5_000, 5_001) * 3 + (300_000, 300_001)
"""Time of a frame since the newest message: where deliveries are decided."""

_UNANSWERED_MS = 135_001
"""Time since the newest request from which on no response to it is awaited."""

LONG_PAUSES_MS = (*PAUSES_MS, 315_000, 600_000, 1_800_000, 3_600_000, 3_600_001)

_ACTIONS = (
    "content", "content", "content", "content", "sync", "sync", "ask", "ask", "ask",
    "answer", "answer", "answer", "reveal", "reveal", "recover", "again",
    "heal", "ephemeral", "collide", "stray", "drop", "renew",
)  # fmt: skip

_SMALLER = BloomParameters(capacity=100, error_rate=0.001)
"""Of a nim filter that begins anew with another size, which its header says."""


class Step(NamedTuple):
    """One frame that is sent.

    Attributes:
        actor: Who, modulo the participants.
        action: What kind of frame.
        pause_ms: Time since the frame before.
        after_ms: If not 0, it is sent so long after the newest message, unless the
            pause ends later.
        heard: Bit per participant: whether it hears the frame, unless it is deaf.
        tap: 0 to 2 nobody sees it; 5 both taps; 6 the second, late; 7 the first,
            and its record is delivered twice; else the first.
        filter: 0 none; 1 unusable; else usable.
        names: How many ids its history names at most.
        unnamed: Bit per entry of its history: whether the entry leaves out who sent it.
    """

    actor: int
    action: str
    pause_ms: int
    after_ms: int
    heard: int
    tap: int
    filter: int
    names: int
    unnamed: int


class Scene(NamedTuple):
    """The participants and taps of some traffic.

    Attributes:
        dialects: Of each participant.
        crowded: Who has a filter so full that it alone proves little.
        full_bytes: Bytes of that filter of which every bit is set.
        deaf: Who hears nobody.
        timed: Whether a lamport is at least the time in seconds, so that it grows also
            while nothing is heard.
        hashes: Whether records carry Waku hashes.
        steps: What happens.
    """

    dialects: tuple[Dialect, ...]
    crowded: int
    full_bytes: int
    deaf: int
    timed: bool
    hashes: bool
    steps: list[Step]


def _seen(
    actor: int,
    action: str,
    pause_ms: int,
    names: int = 0,
    tap: int = 3,
    unnamed: int = 0,
) -> Step:
    """A frame that all participants receive and the first tap sees."""
    return Step(actor, action, pause_ms, 0, 15, tap, 9, names, unnamed)


def _dependency(unnamed: int = 0) -> tuple[Step, ...]:
    """After the warm-up one message is named that no tap has shown."""
    return (
        _seen(0, "content", 0),
        _seen(0, "content", 30_001),
        _seen(0, "content", 1_000, tap=0),
        _seen(1, "sync", 1_000, names=2, unnamed=unnamed),
    )


_OPENINGS: tuple[tuple[Step, ...], ...] = (
    (),
    (),
    # What hardly ever comes by chance. It is asked for, and comes when nobody waits
    # for it any more;
    (*_dependency(), _seen(1, "recover", 5_000), _seen(0, "recover", 0)),
    # it is asked for, and answered twice;
    (
        *_dependency(),
        _seen(1, "recover", 5_000),
        _seen(0, "answer", 1_000),
        _seen(0, "answer", 5_000),
    ),
    # whoever sent it is unknown, one alone had it, and it comes after all.
    (
        *_dependency(unnamed=15),
        _seen(1, "sync", 300_001),
        _seen(0, "reveal", 1_000),
    ),
)


def scenes(
    pauses_ms: tuple[int, ...] = PAUSES_MS, max_steps: int = 45
) -> st.SearchStrategy[Scene]:
    """Scenes of two to four participants, some of them of the other dialect."""
    step = st.builds(
        Step,
        actor=st.integers(0, 3),
        action=st.sampled_from(_ACTIONS),
        pause_ms=st.sampled_from(pauses_ms),
        after_ms=st.sampled_from(_AFTER_MESSAGE_MS),
        heard=st.integers(0, 15),
        tap=st.integers(0, 9),
        filter=st.integers(0, 9),
        names=st.integers(0, 3),
        unnamed=st.integers(0, 15),
    )
    spec, nim = Dialect.SPEC, Dialect.NIM
    return st.builds(
        Scene,
        dialects=st.sampled_from(
            [(spec,) * 2, (spec,) * 3, (spec,) * 4, (nim,) * 2, (spec, spec, nim, nim)]
        ),
        crowded=st.integers(-1, 3),
        # Just under 40 % of the bits, or over the 63.1 % at which the rate is 1 %.
        full_bytes=st.sampled_from((7_500, 11_900)),
        deaf=st.integers(-1, 3),
        timed=st.booleans(),
        hashes=st.booleans(),
        steps=st.builds(
            lambda opening, steps: [*opening, *steps],
            st.sampled_from(_OPENINGS),
            st.lists(step, min_size=max_steps // 3, max_size=max_steps),
        ),
    )


@dataclass
class _Participant:
    name: str
    dialect: Dialect
    filter: BloomFilter
    lamport: int = 0
    log: list[str] = field(default_factory=list)
    missing: dict[str, None] = field(default_factory=dict)

    def begin_filter(self, parameters: BloomParameters, held: list[str]) -> None:
        """Start a new filter with these ids only."""
        self.filter = BloomFilter(self.dialect, parameters)
        self.filter.add_all(held)


def _with_hints(frame: Frame, length_bytes: int) -> Frame:
    """Return the frame with a retrieval hint in each entry of its history."""
    return frame._replace(
        causal_history=tuple(
            HistoryEntry(entry.message_id, bytes(length_bytes), entry.sender_id)
            for entry in frame.causal_history
        )
    )


def _entry(step: Step, place: int, message_id: str, sender: str) -> Entry:
    """Return an entry of a history; senders may be absent."""
    return message_id if step.unnamed >> place & 1 else (message_id, sender)


class _Play:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.factory = FrameFactory()
        self.everyone = []
        for index, dialect in enumerate(scene.dialects):
            filter_ = BloomFilter(dialect)
            if index == scene.crowded:
                filter_.bits[: scene.full_bytes] = b"\xff" * scene.full_bytes
            # No name for the last of four: its sender stays unknown.
            unnamed = index == 3 and dialect is Dialect.NIM
            name = "" if unnamed else "abcd"[index]
            self.everyone.append(_Participant(name, dialect, filter_))
        self.senders: dict[str, str] = {}
        self.sent: dict[str, Frame] = {}
        self.asked: list[str] = []
        self.named: set[str] = set()
        self.shown: set[str] = set()
        self.records: list[Record] = []
        self.late: list[tuple[int, Record]] = []
        self.seqs = {"east": 0, "west": 0}
        self.broadcasts = 0
        self.newest_at = 0
        self.asked_at: dict[str, int] = {}

    def frame(self, step: Step, at: int, actor: _Participant) -> Frame:
        named = actor.log[len(actor.log) - min(step.names, len(actor.log)) :]
        history = [_entry(step, n, i, self.senders[i]) for n, i in enumerate(named)]
        actor.lamport += 1
        if self.scene.timed:
            actor.lamport = max(actor.lamport, at // 1_000)
        if step.action == "drop" and step.filter > 4:
            # Its oldest, as a filter of bounded size; it may gain as many meanwhile.
            actor.begin_filter(DEFAULT_PARAMETERS, actor.log[1 + step.heard % 3 :])
        elif step.action == "renew" and step.filter > 4:
            # After a restart without its state, perhaps with other settings.
            smaller = actor.dialect is Dialect.NIM and step.heard % 2
            actor.begin_filter(_SMALLER if smaller else DEFAULT_PARAMETERS, [])
        common: dict[str, Any] = {
            "history": history, "filter_": self.filter_of(step, actor),
            "dialect": actor.dialect,
        }  # fmt: skip
        held = [i for i in actor.log if i in self.sent]
        wanted = [i for i in self.asked if i in self.sent]
        lacked = [i for i in self.sent if self.is_lacked(i)]
        hidden, awaited = self.hidden(), self.awaited()
        match step.action:
            case "content":
                return self.new_content(step, at, actor, common)
            case "stray":
                # An id that nobody ever sends stands in the history.
                stray = f"stray-{step.heard % 4}"
                self.senders.setdefault(stray, "zoe")
                common["history"] = [*history, _entry(step, 3, stray, "zoe")]
                return self.new_content(step, at, actor, common)
            case "ask":
                asked = list(actor.missing)[-1 - step.filter % 3 :]
                if step.filter == 9:
                    # js asks for what it has dropped, and its filter still holds it.
                    asked += actor.log[-1:]
                if step.filter > 1:
                    # Also what is of the other dialect.
                    asked += [i for i in self.sent if i not in self.shown][-1:]
                if step.filter > 7:
                    # What another asked for, perhaps in the other dialect.
                    asked += self.asked[-1:]
                self.asked += asked
                return self.factory.sync(
                    actor.name, actor.lamport, requests=asked, **common
                )
            case "ephemeral":
                ephemeral = self.factory.ephemeral(actor.name, dialect=actor.dialect)
                if step.names > 1:
                    return ephemeral
                # The specification gives it neither; a stranger may.
                return ephemeral._replace(
                    causal_history=tuple(HistoryEntry(i) for i in named),
                    bloom_filter=common["filter_"],
                )
            case "answer" if wanted:
                # Whoever holds it answers; it does not matter who.
                unshown = [i for i in wanted if i not in self.shown]
                unshown = [i for i in unshown if i in self.named] or unshown
                if unshown and step.heard % 8:
                    return self.sent[unshown[-1]]
                return self.sent[wanted[-1 - step.heard % 2 % len(wanted)]]
            case "recover" if awaited:
                return self.sent[awaited[-1]]
            case "recover" if hidden:
                # Asked for now, it may come when nobody waits for it any more.
                self.asked += hidden[-1:]
                return self.factory.sync(
                    actor.name, actor.lamport, requests=hidden[-1:], **common
                )
            case "reveal" if hidden:
                # What was named and no tap has shown is sent again, asked for or not.
                asked = [i for i in hidden if i in self.asked and step.names]
                hidden = asked or hidden
                return self.sent[hidden[-1 - step.heard % len(hidden)]]
            case "heal" if lacked:
                # What somebody lacks is sent again.
                return self.sent[lacked[-1 - step.names % len(lacked)]]
            case "again" if held:
                return self.sent[held[-1 - step.heard % len(held)]]
            case "collide" if held:
                return self.factory.content(
                    held[-1], actor.name, actor.lamport + 1, **common
                )
        sync = self.factory.sync(actor.name, actor.lamport, **common)
        return _with_hints(sync, step.heard)

    def new_content(
        self, step: Step, at: int, actor: _Participant, common: dict[str, Any]
    ) -> Frame:
        message_id = f"m{len(self.sent)}"
        self.senders[message_id] = actor.name
        self.newest_at = at
        text = b"x" * (1 + 20 * step.heard)
        frame = self.factory.content(
            message_id, actor.name, actor.lamport, text=text, **common
        )
        frame = _with_hints(frame, step.heard)
        self.sent[message_id] = frame
        return frame

    def is_lacked(self, message_id: str) -> bool:
        """Whether a participant that could have a message lacks it."""
        return any(
            message_id not in one.log
            for index, one in enumerate(self.everyone)
            if one.dialect is self.sent[message_id].dialect and index != self.scene.deaf
        )

    def hidden(self) -> list[str]:
        """Return ids that were named but that no tap saw."""
        return [i for i in self.sent if i in self.named and i not in self.shown]

    def awaited(self) -> list[str]:
        """Return those of `hidden` that a frame seen by a tap requested."""
        return [i for i in self.hidden() if i in self.asked_at]

    def filter_of(self, step: Step, actor: _Participant) -> bytes:
        if step.filter == 0:
            return b""
        return b"\x01" if step.filter == 1 else actor.filter.to_wire()

    def hear(self, frame: Frame, hearer: _Participant) -> None:
        hearer.lamport = max(hearer.lamport, frame.lamport or 0)
        for entry in frame.causal_history:
            if entry.message_id not in hearer.log:
                hearer.missing[entry.message_id] = None
        if frame.content and frame.lamport is not None:
            hearer.missing.pop(frame.message_id, None)
            if frame.message_id not in hearer.log:
                hearer.log.append(frame.message_id)
                hearer.filter.add(frame.message_id)

    def see(self, tap: str, at: int, frame: Frame) -> Record:
        self.seqs[tap] += 1
        self.shown.add(frame.message_id)
        self.named.update(entry.message_id for entry in frame.causal_history)
        self.asked_at |= {entry.message_id: at for entry in frame.repair_request}
        hash_ = fingerprint(f"hash {self.broadcasts}") if self.scene.hashes else None
        return Record(at, frame, tap, self.seqs[tap], hash_)

    def mirror(self, step: Step, at: int, frame: Frame) -> None:
        self.broadcasts += 1
        tap = step.tap
        if tap == 6:
            due = len(self.records) + 1 + step.heard % 6
            self.late.append((due, self.see("west", at, frame)))
        elif tap > 2:
            self.records.append(self.see("east", at, frame))
            if tap == 5:
                self.records.append(self.see("west", at + step.heard % 3, frame))
            if tap == 7:
                self.records.append(self.records[-1])
        while self.late and self.late[0][0] <= len(self.records):
            self.records.append(self.late.pop(0)[1])

    def run(self, longest_ms: int | None) -> list[Record]:
        at = 0
        for step in self.scene.steps:
            at += step.pause_ms
            if step.after_ms:
                at = max(at, self.newest_at + step.after_ms)
            if step.action == "recover" and (awaited := self.awaited()):
                at = max(at, self.asked_at[awaited[-1]] + _UNANSWERED_MS)
            if longest_ms is not None:
                at = min(at, longest_ms)
            actor = self.everyone[step.actor % len(self.everyone)]
            frame = self.frame(step, at, actor)
            for index, hearer in enumerate(self.everyone):
                hears = hearer is actor or (
                    index != self.scene.deaf and step.heard >> index & 1
                )
                if hears and hearer.dialect is frame.dialect:
                    self.hear(frame, hearer)
            self.mirror(step, at, frame)
        self.records += [record for _, record in self.late]
        return self.records


def play(scene: Scene, longest_ms: int | None = None) -> list[Record]:
    """Return what the taps write, in topic order.

    Args:
        scene: What happens.
        longest_ms: No record is later than this.
    """
    return _Play(scene).run(longest_ms)
