"""The participants of a channel."""

from __future__ import annotations

import msgspec

from sds_core.native import native
from sds_core.observer.rule_settings import RuleSettings

UNKNOWN = -1
"""Index for all senders without a name."""


class Participant(msgspec.Struct, array_like=True):
    """One participant, with the event times of its earliest and latest first copy."""

    name: str
    first_ms: int | None = None
    last_ms: int = 0


@native
class Participants:
    """All participants of a channel.

    A participant's index is its place in the order in which the participants were first
    mentioned.
    """

    _horizon_ms: int
    _limit: int
    _all: list[Participant]
    _index: dict[str, int]
    _spoken: dict[int, Participant]

    def __init__(self, settings: RuleSettings, state: list[Participant]) -> None:
        self._horizon_ms = settings.horizon_ms
        self._limit = settings.remembered
        self._all = state
        self._index = {participant.name: i for i, participant in enumerate(state)}
        # Participants that have sent first copies, by index; the participant with the
        # latest first copy is last.
        spoken = [one for one in enumerate(state) if one[1].first_ms is not None]
        self._spoken = dict(sorted(spoken, key=lambda one: one[1].last_ms))

    def __len__(self) -> int:
        """Number of participants that sent a frame or were named in one."""
        return len(self._all)

    def index(self, name: str) -> int:
        """Index of a participant id. A new id is added.

        The index is `UNKNOWN` if the id is empty, or if the id is new and the number of
        participants has reached `RuleSettings.remembered`.
        """
        if not name:
            return UNKNOWN
        index = self._index.get(name)
        if index is None:
            if len(self._all) >= self._limit:
                return UNKNOWN
            index = self._index[name] = len(self._all)
            self._all.append(Participant(name))
        return index

    def name(self, index: int) -> str:
        """Participant id; empty for `UNKNOWN`."""
        return "" if index == UNKNOWN else self._all[index].name

    def names(self) -> list[str]:
        """All participant ids."""
        return [participant.name for participant in self._all]

    def active_span(self, index: int) -> tuple[int, int]:
        """The range of event times t0 at which the participant is active.

        The participant is active at t0 if its earliest first copy is before t0, and its
        latest first copy is at most one retention window before t0.

        Returns:
            Start (excluded) and end (included) of the range, Unix ms; (0, 0) if the
            participant has sent no first copy.
        """
        participant = self._all[index]
        if participant.first_ms is None:
            return 0, 0
        return participant.first_ms, participant.last_ms + self._horizon_ms

    def active_others(self, sender: int, time_ms: int, enough: int) -> int:
        """Number of participants except `sender` that are active at `time_ms`.

        The count stops at `enough`.
        """
        found: int = 0
        for index, participant in reversed(self._spoken.items()):
            if found >= enough:
                break
            if (
                index != sender
                and participant.first_ms is not None
                and participant.first_ms < time_ms
                and participant.last_ms >= time_ms - self._horizon_ms
            ):
                found += 1
        return found

    def has_spoken_since(self, index: int, time_ms: int) -> bool:
        """Whether the participant's latest first copy is at or after `time_ms`."""
        return self._all[index].last_ms >= time_ms

    def last_ms(self, index: int) -> int:
        """Event time of the participant's latest first copy, Unix ms; 0 if none."""
        return self._all[index].last_ms

    def lately(self, time_ms: int) -> int:
        """Number of participants that sent a first copy at or after `time_ms`."""
        return sum(p.last_ms >= time_ms for p in self._spoken.values())

    def next_silence_ms(self, time_ms: int) -> int | None:
        """The earliest `last_ms` of a participant at or after `time_ms`, or None."""
        return min(
            (p.last_ms for p in self._spoken.values() if p.last_ms >= time_ms),
            default=None,
        )

    def spoke(self, index: int, time_ms: int) -> bool:
        """Record a first copy; return whether the participant sent none before."""
        if index == UNKNOWN:
            return False
        participant = self._all[index]
        first_ms = participant.first_ms
        participant.first_ms = time_ms if first_ms is None else min(first_ms, time_ms)
        participant.last_ms = max(participant.last_ms, time_ms)
        # The entry moves to the end, so that the latest senders stay last in `_spoken`.
        self._spoken.pop(index, None)
        self._spoken[index] = participant
        return first_ms is None
