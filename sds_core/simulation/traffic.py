"""When participants arrive, leave, and send messages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random

from sds_core.simulation.scenario import Absences, Scenario, Traffic, selected
from sds_core.simulation.streams import Streams


class Attendance:
    """Arrivals and departures of participants; an index identifies a participant."""

    def __init__(self, scenario: Scenario, streams: Streams) -> None:
        churn = scenario.churn
        self._duration_ms = scenario.duration_ms
        self._streams = streams

        def some(share: float, purpose: str, of: Sequence[int]) -> list[int]:
            stream = streams.scalar("churn", purpose)
            count = selected(share, scenario.participants)
            return stream.sample(of, min(count, len(of)))

        everybody = range(scenario.participants)
        self._joining = frozenset(some(churn.joining_share, "joining", everybody))
        self._leaving = frozenset(some(churn.leaving_share, "leaving", everybody))
        self._patterns: dict[int, Absences] = {}
        for number, pattern in enumerate(churn.patterns):
            left = [one for one in everybody if one not in self._patterns]
            purpose = f"absences {number}" if number else "absences"
            drawn = some(pattern.share, purpose, left)
            self._patterns.update(dict.fromkeys(drawn, pattern))

    def pattern(self, participant: int) -> Absences | None:
        """Return the settings of a participant's absences; None if it has none."""
        return self._patterns.get(participant)

    def changes(self, participant: int) -> Iterator[tuple[int, bool]]:
        """Yield a participant's arrivals and departures, in order of time.

        Each pair consists of a time, in ms since the start, and a flag: whether the
        participant is present from this time on. The first pair is the participant's
        arrival. If the participant has absences and never leaves forever, the sequence
        is infinite.
        """
        random = self._streams.scalar("churn", "times", str(participant))
        # Both values are drawn even if they are not used, so that a change of
        # `joining_share` or `leaving_share` does not change later draws.
        join, leave = random.random(), random.random()
        at_ms = join * self._duration_ms if participant in self._joining else 0.0
        end_ms = math.inf
        if participant in self._leaving:
            end_ms = at_ms + leave * (self._duration_ms - at_ms)
        yield int(at_ms), True
        pattern = self._patterns.get(participant)
        is_first = True
        while pattern is not None:
            at_ms += _length_s(pattern, pattern.mean_present_s, random) * 1_000
            if is_first and pattern.lengths == "regular":
                at_ms -= random.random() * pattern.mean_present_s * 1_000
            is_first = False
            if at_ms >= end_ms:
                break
            yield int(at_ms), False
            away_s = _length_s(pattern, pattern.mean_away_s, random)
            away_s = min(max(away_s, pattern.least_away_s), pattern.most_away_s)
            at_ms += away_s * 1_000
            if at_ms >= end_ms:
                # The participant leaves forever while it is offline, so no further
                # departure follows.
                return
            yield int(at_ms), True
        if end_ms < math.inf:
            yield int(end_ms), False


def _length_s(pattern: Absences, mean_s: float, random: Random) -> float:
    if pattern.lengths == "regular":
        return mean_s
    return random.expovariate(1 / mean_s)


def occasions(
    traffic: Traffic, participants: int, duration_ms: int, random: Random
) -> Iterator[int]:
    """Yield the times of a channel's occasions to send, in ms since the start.

    The times are in ascending order, and less than `duration_ms`. They form a Poisson
    process whose rate depends on `traffic.spells`. The method is thinning (Lewis and
    Shedler, 1979): times are drawn at the highest rate, and each time is kept with a
    probability in proportion to the rate at this time.
    """
    mean_ms = traffic.mean_interval_s * 1_000
    if traffic.per == "participant":
        mean_ms /= participants
    # The rate changes only when a spell begins or ends, so the highest rate begins at
    # one of these times or at the start.
    begins = [0.0, *(at for s in traffic.spells for at in (s.from_s, s.until_s))]
    peak = max(_rate(traffic, math.ceil(at_s * 1_000)) for at_s in begins)
    if peak == 0:
        return
    at_ms = 0.0
    while True:
        at_ms += random.expovariate(peak / mean_ms)
        if at_ms >= duration_ms:
            return
        if random.random() * peak < _rate(traffic, int(at_ms)):
            yield int(at_ms)


def _rate(traffic: Traffic, elapsed_ms: int) -> float:
    return math.prod(spell.rate for spell in traffic.spells if spell.holds(elapsed_ms))
