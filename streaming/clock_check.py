"""Compares this machine's clock with other clocks, and logs differences."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from sds_core.observer.clock import ClockFigures, ClockLevel, NewRecord, TapClocks

_log = logging.getLogger("sds-monitor")

_INTERVAL_S = 30.0
"""Time between two requests to Kafka, seconds.

The alert for a wrong clock waits two minutes, in which several requests are made.
"""

_LONGEST_MS = 2_000
"""Maximum duration of a request whose answer is used, ms.

The error of the measured difference is at most half of the request's duration.
"""

_VALID_S = 300.0
"""How long the last usable answer is used while newer answers are too slow, seconds."""

ADVICE = "set both clocks by NTP"


def measure(
    kafka_ms: Callable[[], int | None], wall_ms: Callable[[], int]
) -> tuple[int | None, int]:
    """Return Kafka's clock minus this machine's clock, and the request's duration, ms.

    The difference is None if Kafka does not report its time.
    """
    begin_ms = wall_ms()
    answer_ms = kafka_ms()
    end_ms = wall_ms()
    behind_ms = None if answer_ms is None else answer_ms - (begin_ms + end_ms) // 2
    return behind_ms, end_ms - begin_ms


def is_exact(took_ms: int) -> bool:
    """Whether an answer arrived soon enough to be used."""
    return 0 <= took_ms <= _LONGEST_MS


class ClockCheck:
    """Compares this machine's clock with Kafka's clock and with times of new records.

    Logs changes of the `ClockLevel`.
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
        self._taps = TapClocks()
        self._asked_s = self._told_s = float("-inf")
        self._behind_ms: int | None = None
        self._level = ClockLevel.AGREES
        self.figures = ClockFigures()

    def observe(self, records: Iterable[NewRecord]) -> None:
        """Compare this machine's clock with record times; see `TapClocks.observe`."""
        self._taps.observe(records, self._monotonic_s())
        self._publish()

    def compare(self) -> None:
        """Compare this machine's clock with Kafka's, at most once in `_INTERVAL_S`.

        Raises:
            connectors.kafka.settings.KafkaUnreachable: No broker answered.
        """
        if self._monotonic_s() - self._asked_s < _INTERVAL_S:
            return
        self._asked_s = self._monotonic_s()
        behind_ms, took_ms = measure(self._kafka_ms, self._wall_ms)
        if behind_ms is not None and is_exact(took_ms):
            self._behind_ms = behind_ms
            self._told_s = self._monotonic_s()
        elif behind_ms is None or self._monotonic_s() - self._told_s > _VALID_S:
            self._behind_ms = None
        self._publish()

    def _publish(self) -> None:
        self.figures = self._taps.figures(self._behind_ms)
        level = self.figures.level(self._level)
        if level is self._level:
            return
        self._level = level
        if level is ClockLevel.AGREES:
            # The text has "seems", because the level is also AGREES if no other clock
            # can be compared any more.
            _log.info(
                "this machine's clock no longer seems to differ from other clocks"
            )
        elif level is ClockLevel.NOTABLE:
            _log.warning("%s: %s", self.figures.sentence, ADVICE)
        else:
            _log.error(
                "%s: %s; records that are more than a minute in the future become dead "
                "letters",
                self.figures.sentence,
                ADVICE,
            )
