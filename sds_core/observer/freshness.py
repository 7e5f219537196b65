"""When Kafka answered last, and when the topic last grew.

While Kafka does not answer, the figures do not change, but look valid. While the topic
does not grow, the monitor cannot know whether the taps miss anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

STALE_S = 15.0
"""Seconds without an answer from Kafka after which the figures count as stale.

The limit is three times the interval between heartbeats. The election of a
partition's leader takes less time.
"""

SILENT_S = 60.0
"""Seconds without a new record after which the topic's state is unknown.

In one minute, a tap sends twelve heartbeats.
"""


@dataclass(frozen=True, slots=True)
class MissingTopic:
    """Kafka reports that the topic does not exist.

    Attributes:
        since_ms: Wall time since which the topic does not exist, Unix ms.
    """

    topic: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Freshness:
    """The newest answer of Kafka, and how old it is at a moment.

    Attributes:
        answered_ms: Wall time of the answer, Unix ms; None before the first answer.
        answered_s: Monotonic time of the answer, seconds: a change of the wall clock
            must not look like a silence. Before the first answer, this is the moment of
            `asked_ms`.
        silent_s: Seconds from `answered_s` to the last `as_of`.
        cause: Why the newest request has no answer, in one line; empty if Kafka
            answered.
        asked_ms: When the first request was sent, wall time, Unix ms; None if Kafka has
            answered, or nothing was sent.
    """

    answered_ms: int | None = None
    answered_s: float = 0.0
    silent_s: float = 0.0
    cause: str = ""
    asked_ms: int | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether Kafka has not answered the first request yet."""
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
    """When the topic last got a record, and how long ago this was at the last `as_of`.

    Record times are not used: the clock of a tap may be wrong, and traffic may be
    replayed at any speed.

    Attributes:
        grew_s: When the topic last grew, or when the watch began if this was later;
            seconds of the monotonic clock. None if the topic is not watched.
        idle_s: Seconds from `grew_s` to the last `as_of`.
    """

    grew_s: float | None = None
    idle_s: float = 0.0

    @property
    def is_silent(self) -> bool:
        """Whether the topic has not grown for more than `SILENT_S`."""
        return self.idle_s > SILENT_S

    def after_answer(
        self, has_grown: bool, before: Freshness, monotonic_s: float
    ) -> Arrivals:
        """Return the arrivals after an answer of Kafka.

        Args:
            has_grown: Whether the topic's end is later than in the previous answer.
            before: The previous answer. If the previous answer is old, it is unknown
                when the topic grew, so the measurement restarts.
            monotonic_s: When the answer arrived, seconds of the monotonic clock.
        """
        if self.grew_s is None or has_grown or before.as_of(monotonic_s).is_stale:
            return Arrivals(monotonic_s)
        return self

    def as_of(self, monotonic_s: float) -> Arrivals:
        """Return the figures at another moment, seconds of the monotonic clock."""
        if self.grew_s is None:
            return self
        return replace(self, idle_s=max(0.0, monotonic_s - self.grew_s))
