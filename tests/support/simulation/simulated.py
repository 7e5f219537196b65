"""A simulation's log, written by hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sds_core.message_channel.events import Cause, Event, Received
from sds_core.message_channel.profile import Profile
from sds_core.simulation.log import (
    Arrival,
    Entry,
    GapCause,
    Happening,
    Heartbeat,
    Presence,
    Sighting,
    TapGap,
    Transmission,
)
from sds_core.simulation.truth import Truth
from sds_core.wire import Dialect, Frame, HistoryEntry, encode

START_MS = 1_750_000_000_000
"""Unix ms of the relative time 0."""

START_LAMPORT = 100
"""Highest lamport timestamp of the warm-up, in both dialects."""

TAP = "tap"

Named = str | tuple[str, str]
"""A message id, or one with the sender that the entry names."""


class Simulated:
    """Writes a log and computes its truth; all times are ms since `START_MS`.

    Attributes:
        entries: the log.
    """

    def __init__(self, channel_id: str = "channel") -> None:
        self.entries: list[Entry] = []
        self._channel_id = channel_id
        self._numbers = itertools.count()
        self._seqs: dict[str, int] = {}

    @classmethod
    def after_warm_up(cls) -> Simulated:
        """Return a channel after its warm-up, so that gaps can open."""
        simulated = cls()
        for dialect in Dialect:
            simulated.sync("", at=0, lamport=START_LAMPORT, dialect=dialect)
        return simulated

    def content(
        self,
        message_id: str,
        by: str,
        at: int,
        lamport: int = 1_000,
        *,
        history: Sequence[Named] = (),
        requests: Sequence[Named] = (),
        has_filter: bool = True,
        dialect: Dialect = Dialect.SPEC,
        text: bytes = b"text",
        seen: bool = True,
        channel_id: str = "",
    ) -> Transmission:
        """Send a message, which the tap sees at the same time."""
        frame = Frame.build(
            dialect,
            message_id=message_id,
            channel_id=channel_id or self._channel_id,
            sender_id=by,
            lamport=lamport,
            causal_history=_entries(history),
            # The truth never reads it.
            bloom_filter=b"filter" if has_filter else b"",
            repair_request=_entries(requests),
            content=text,
        )
        cause = Cause.CONTENT if text else Cause.SYNC
        return self.transmit(frame, by, at, cause, seen)

    def sync(
        self, by: str, at: int, lamport: int = 1_000, **of_frame: Any
    ) -> Transmission:
        """Send a sync message, which the tap sees at the same time."""
        message_id = f"sync-{len(self.entries)}"
        return self.content(message_id, by, at, lamport, text=b"", **of_frame)

    def library_sync(
        self, message_id: str, by: str, at: int, lamport: int = 1_000, **of_frame: Any
    ) -> Transmission:
        """Send a sync message that its library takes for a message (nim-sds)."""
        seen = of_frame.pop("seen", True)
        of_frame.setdefault("dialect", Dialect.NIM)
        sent = self.content(
            message_id, by, at, lamport, text=b"", seen=False, **of_frame
        )
        self.entries[-1] = sent = sent._replace(cause=Cause.CONTENT)
        if seen:
            self.sight(sent, at)
        return sent

    def tap_gap(self, at: int, until: int, tap: str = TAP) -> None:
        """Let a tap be down for a while."""
        span = (START_MS + at, tap, START_MS + until)
        self.entries.append(TapGap(*span, GapCause.DOWN))

    def ephemeral(self, by: str, at: int, *, seen: bool = True) -> Transmission:
        """Send an ephemeral message, which the tap sees at the same time."""
        frame = Frame.build(
            Dialect.SPEC,
            message_id="ephemeral",
            channel_id=self._channel_id,
            sender_id=by,
            content=b"text",
        )
        return self.transmit(frame, by, at, Cause.EPHEMERAL, seen)

    def again(
        self,
        sent: Transmission,
        at: int,
        *,
        by: str = "",
        cause: Cause = Cause.RETRY,
        seen: bool = True,
    ) -> Transmission:
        """Send a message again with the same bytes."""
        return self.transmit(sent.frame, by or sent.by, at, cause, seen)

    def transmit(
        self, frame: Frame, by: str, at: int, cause: Cause, seen: bool = True
    ) -> Transmission:
        """Send a frame, which the tap sees at the same time."""
        number = next(self._numbers)
        transmission = Transmission(
            number,
            START_MS + at,
            frame.channel_id,
            by,
            cause,
            frame,
            encode(frame),
            hash_of(number),
            (START_MS + at) * 1_000_000,
        )
        self.entries.append(transmission)
        if seen:
            self.sight(transmission, at)
        return transmission

    def sight(self, sent: Transmission, at: int, tap: str = TAP) -> None:
        """Let a tap record a transmission."""
        self._seqs[tap] = seq = self._seqs.get(tap, 0) + 1
        self.entries.append(Sighting(START_MS + at, tap, seq, sent))

    def heartbeat(self, at: int, tap: str = TAP) -> None:
        """Move the clock only."""
        seq = self._seqs.get(tap, 0)
        self.entries.append(Heartbeat(START_MS + at, tap, seq))

    def happen(self, participant: str, event: Event, at: int) -> None:
        """Emit an event of a participant to its application."""
        self.entries.append(
            Happening(START_MS + at, self._channel_id, participant, event)
        )

    def receive(self, participant: str, *message_ids: str, at: int = 0) -> None:
        """Let messages arrive at a participant and enter its filter."""
        for message_id in message_ids:
            self.happen(participant, Received(message_id, ""), at)

    def arrive(self, participant: str, sent: Transmission, at: int) -> None:
        """Let a message arrive that the participant did not have."""
        self.entries.append(Arrival(START_MS + at, participant, sent))
        self.receive(participant, sent.frame.message_id, at=at)

    def present(
        self,
        *participants: str,
        at: int = 0,
        present: bool = True,
        is_new: bool = False,
    ) -> None:
        """Let participants join or leave, or join with no state."""
        self.entries += [
            Presence(
                START_MS + at, self._channel_id, participant, present, is_new=is_new
            )
            for participant in participants
        ]

    def begin_as(self, participant: str, profile: Profile) -> None:
        """Let a participant be present from the start, with a profile."""
        came = Presence(START_MS, self._channel_id, participant, True, profile)
        self.entries.insert(0, came)

    def document(self) -> dict[str, Any]:
        """Return the whole truth so far."""
        truth = Truth("by hand", 7)
        for entry in self.entries:
            truth.add(entry)
        return truth.document()

    def figures(self, *names: str) -> Any:
        """The channel's figures; of one name, or several, only those."""
        figures = self.document()["channels"][self._channel_id]
        if len(names) == 1:
            return figures[names[0]]
        return {name: figures[name] for name in names} if names else figures

    def gaps(self) -> dict[str, int]:
        """Return the figures of gaps that are not 0."""
        return not_zero(self.figures("gaps"))

    def repair(self) -> dict[str, int]:
        """Return the figures of repair that are not 0."""
        return not_zero(self.figures("repair"))

    def deliveries(self) -> dict[str, int]:
        """Return the figures of deliveries that are not 0."""
        return not_zero(self.figures("deliveries"))

    def fates(self) -> dict[str, int]:
        """Return the number of messages by fate, without zeros."""
        return not_zero(
            self.figures(
                "acknowledged_in_time", "unacknowledged", "unwitnessed", "in_flight"
            )
        )

    def message(self, message_id: str) -> dict[str, Any]:
        """Return the history of a message."""
        story = self.document()["messages"][self._channel_id][message_id]
        assert isinstance(story, dict)
        return story


def hash_of(number: int) -> str:
    """Return the Waku hash of a transmission."""
    return f"0x{number:064x}"


def not_zero(figures: Mapping[str, int]) -> dict[str, int]:
    """Return the figures that are not 0."""
    return {name: value for name, value in figures.items() if value}


def _entries(entries: Iterable[Named]) -> tuple[HistoryEntry, ...]:
    return tuple(
        HistoryEntry(entry)
        if isinstance(entry, str)
        else HistoryEntry(entry[0], b"", entry[1])
        for entry in entries
    )
