"""When each participant is present."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sds_core.simulation.scenario import Scenario
from sds_core.simulation.streams import Streams


class Attendance:
    """Arrivals and departures of participants, by their index."""

    def __init__(self, scenario: Scenario, streams: Streams) -> None:
        churn = scenario.churn
        absences = churn.absences
        self._absences = absences
        self._duration_ms = scenario.duration_ms
        self._streams = streams

        def some(share: float, purpose: str) -> frozenset[int]:
            everybody = range(scenario.participants)
            stream = streams.scalar("churn", purpose)
            return frozenset(stream.sample(everybody, round(share * len(everybody))))

        self._joining = some(churn.joining_share, "joining")
        self._leaving = some(churn.leaving_share, "leaving")
        self._wandering = some(absences.share if absences else 0.0, "absences")

    def changes(self, participant: int) -> Iterator[tuple[int, bool]]:
        """Yield (ms since the start, whether it is present from then on), in order.

        The first pair is the participant's arrival. The sequence may be infinite.
        """
        random = self._streams.scalar("churn", "times", str(participant))
        # Always drawn, so that one share does not change the random draws of another.
        join, leave = random.random(), random.random()
        at_ms = join * self._duration_ms if participant in self._joining else 0.0
        end_ms = math.inf
        if participant in self._leaving:
            end_ms = at_ms + leave * (self._duration_ms - at_ms)
        yield int(at_ms), True
        absences = self._absences
        while absences is not None and participant in self._wandering:
            at_ms += random.expovariate(1 / absences.mean_present_s) * 1_000
            if at_ms >= end_ms:
                break
            yield int(at_ms), False
            away_s = random.expovariate(1 / absences.mean_away_s)
            away_s = min(max(away_s, absences.least_away_s), absences.most_away_s)
            at_ms += away_s * 1_000
            if at_ms >= end_ms:
                # The participant is away already and does not return.
                return
            yield int(at_ms), True
        if end_ms < math.inf:
            yield int(end_ms), False
