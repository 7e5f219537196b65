"""Tracks when Kafka last answered, and when the topic last got a record.

While Kafka does not answer, the figures do not change, but still look valid. While the
topic gets no records, the monitor cannot know whether the taps miss traffic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

STALE_S = 15.0
"""Seconds without an answer from Kafka after which the figures count as stale.

This is three times the interval between a tap's heartbeats. Kafka needs less time to
elect a new leader of a partition.
"""

SILENT_S = 60.0
"""Maximum number of seconds without a new record in normal operation.

If no record arrives for a longer time, it is unknown whether taps miss traffic: a
working tap sends twelve heartbeats in this time.
"""


@dataclass(frozen=True, slots=True)
class MissingTopic:
    """Kafka reports that the topic does not exist.

    Attributes:
        since_ms: Wall time of Kafka's first such report, Unix ms.
    """

    topic: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Freshness:
    """Time and age of Kafka's newest answer.

    Attributes:
        answered_ms: Wall time of the answer, Unix ms; None before the first answer.
        answered_s: Monotonic time of the answer, seconds. `silent_s` is computed from
            this time, because a change of the wall clock must not look like a silence
            of Kafka. Before the first answer, `answered_s` is the monotonic time of the
            first request.
        silent_s: Seconds from `answered_s` to the time that was passed to `as_of`.
        cause: Why Kafka did not answer the newest request, in one line; empty if it
            answered.
        asked_ms: Wall time of the first request, Unix ms; None if Kafka has answered,
            or no request was sent.
    """

    answered_ms: int | None = None
    answered_s: float = 0.0
    silent_s: float = 0.0
    cause: str = ""
    asked_ms: int | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether a request was sent, but Kafka has never answered."""
        return self.answered_ms is None and self.asked_ms is not None

    @property
    def is_stale(self) -> bool:
        """Whether Kafka has not answered for more than `STALE_S`."""
        return self.silent_s > STALE_S

    def as_of(self, monotonic_s: float) -> Freshness:
        """Return the figures at another moment, seconds of the monotonic clock."""
        if self.answered_ms is None and self.asked_ms is None:
            return self
        return replace(self, silent_s=max(0.0, monotonic_s - self.answered_s))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When the topic last got a record, and how long it has been idle since then.

    The monitor's clock decides, not the time in the record: the clock of a tap may be
    wrong, and traffic may be replayed at any speed.

    Attributes:
        grew_s: Monotonic time at which the monitor last saw new records in the topic,
            seconds. If it has seen none since the measurement began, the time at which
            the measurement began. None if the topic is not watched.
        idle_s: Seconds from `grew_s` to the time that was passed to `as_of`.
    """

    grew_s: float | None = None
    idle_s: float = 0.0

    @property
    def is_silent(self) -> bool:
        """Whether the topic has got no record for more than `SILENT_S`."""
        return self.idle_s > SILENT_S

    def after_answer(
        self, has_grown: bool, before: Freshness, monotonic_s: float
    ) -> Arrivals:
        """Return the arrivals after a new answer from Kafka.

        Args:
            has_grown: Whether the topic has more records than at the previous answer.
            before: The previous answer. If it is stale when the new answer arrives, the
                measurement begins again, because it is unknown when the topic last got
                a record.
            monotonic_s: Monotonic time at which the new answer arrived, seconds.
        """
        if self.grew_s is None or has_grown or before.as_of(monotonic_s).is_stale:
            return Arrivals(monotonic_s)
        return self

    def as_of(self, monotonic_s: float) -> Arrivals:
        """Return the figures at another moment, seconds of the monotonic clock."""
        if self.grew_s is None:
            return self
        return replace(self, idle_s=max(0.0, monotonic_s - self.grew_s))
