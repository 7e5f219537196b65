"""Compares this machine's clock with others while a job runs, and logs differences."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from sds_core.observer.clock import ClockFigures, ClockLevel, RecordLead

_log = logging.getLogger("sds-monitor")

_INTERVAL_S = 30.0
"""Time between two questions to Kafka, in seconds: a clock that is set wrong is
reported long before the alert."""

_LONGEST_MS = 2_000
"""Longest time for a question. Kafka's time is that of its middle, so half of this is
the greatest error."""

_VALID_S = 300.0
"""Time for which an answer counts if those after it are too slow, in seconds."""

_ADVICE = "set both clocks by NTP"


class ClockCheck:
    """Compares the clock of this machine.

    Args:
        kafka_ms: Asks Kafka for its time, Unix ms; None if it does not tell.
        wall_ms: This machine's clock, Unix ms.
        monotonic_s: Monotonic clock, seconds.

    Attributes:
        figures: Result of the newest comparison.
    """

    def __init__(
        self,
        kafka_ms: Callable[[], int | None],
        wall_ms: Callable[[], int],
        monotonic_s: Callable[[], float],
    ) -> None:
        self._kafka_ms = kafka_ms
        self._wall_ms = wall_ms
        self._monotonic_s = monotonic_s
        self._lead = RecordLead()
        self._asked_s = self._told_s = float("-inf")
        self._behind_ms: int | None = None
        self._level = ClockLevel.AGREES
        self.figures = ClockFigures()

    def observe(self, newest: Mapping[int, tuple[int, int]]) -> None:
        """Compare with new records; see `RecordLead.observe`."""
        self._publish(self._lead.observe(newest, self._wall_ms()))

    def compare(self) -> None:
        """Compare with Kafka's clock, unless that was done a moment ago.

        Raises:
            connectors.kafka.settings.KafkaUnreachable: No broker answered.
        """
        if self._monotonic_s() - self._asked_s < _INTERVAL_S:
            return
        self._asked_s = self._monotonic_s()
        begin_ms = self._wall_ms()
        kafka_ms = self._kafka_ms()
        end_ms = self._wall_ms()
        if kafka_ms is not None and 0 <= end_ms - begin_ms <= _LONGEST_MS:
            self._behind_ms = kafka_ms - (begin_ms + end_ms) // 2
            self._told_s = self._monotonic_s()
        elif kafka_ms is None or self._monotonic_s() - self._told_s > _VALID_S:
            self._behind_ms = None
        self._publish(self.figures.records_ahead_ms)

    def _publish(self, records_ahead_ms: int | None) -> None:
        self.figures = ClockFigures(self._behind_ms, records_ahead_ms)
        level = self.figures.level(self._level)
        if level is self._level:
            return
        self._level = level
        if level is ClockLevel.AGREES:
            # Or nothing is left to compare it with.
            _log.info("this machine's clock no longer seems to differ from others")
        elif level is ClockLevel.NOTABLE:
            _log.warning("%s: %s", self.figures.sentence, _ADVICE)
        else:
            _log.error(
                "%s: %s; records stamped more than a minute ahead become dead letters",
                self.figures.sentence,
                _ADVICE,
            )
