"""When Kafka answered last, and when the topic last grew.

While Kafka does not answer, every figure stays as it was, and would look as good as
before. While the topic does not grow, nothing is known of what its taps should see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

STALE_S = 15.0
"""Seconds without an answer from Kafka after which the figures count as old. Longer
than a change of a partition's leader, and three times a heartbeat's interval."""

SILENT_S = 60.0
"""Seconds without a new record in the topic after which nobody knows what happens:
twelve heartbeats."""


@dataclass(frozen=True, slots=True)
class MissingTopic:
    """Kafka answers that the topic does not exist.

    Attributes:
        topic: Its name.
        since_ms: Since when, wall time, Unix ms.
    """

    topic: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Freshness:
    """The newest answer of Kafka, as of a moment.

    Attributes:
        answered_ms: When it came, wall time, Unix ms; None before the first answer.
        answered_s: The same moment on the monotonic clock, seconds: setting the wall
            clock must not look like a silence. Before the first answer that of
            `asked_ms`.
        silent_s: Seconds since then, as of the last `as_of`.
        cause: Why the newest question got no answer, in one line; empty if it got one.
        asked_ms: When Kafka was first asked, wall time, Unix ms, if it has not answered
            since; None if it has answered, or was not asked.
    """

    answered_ms: int | None = None
    answered_s: float = 0.0
    silent_s: float = 0.0
    cause: str = ""
    asked_ms: int | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether Kafka has not answered the first question yet."""
        return self.answered_ms is None and self.asked_ms is not None

    @property
    def is_stale(self) -> bool:
        """Whether Kafka has not answered for more than `STALE_S`."""
        return self.silent_s > STALE_S

    def as_of(self, monotonic_s: float) -> Freshness:
        """Return the same as of another moment, seconds of the monotonic clock."""
        if self.answered_ms is None and self.asked_ms is None:
            return self
        return replace(self, silent_s=max(0.0, monotonic_s - self.answered_s))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When the topic last got a record, as of a moment.

    Record times have no part in it: the clock of a tap may be wrong, and traffic may be
    played at any speed.

    Attributes:
        grew_s: When the topic was last seen to have grown, or when it is watched since,
            seconds of the monotonic clock; None if it is not watched.
        idle_s: Seconds since then, as of the last `as_of`.
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
        """Return the same after an answer of Kafka.

        Args:
            has_grown: Whether the topic reaches further than in the answer before.
            before: The answer before. If it was long ago, nobody knows when the topic
                grew, so the measurement begins anew.
            monotonic_s: When the answer came, seconds of the monotonic clock.
        """
        if self.grew_s is None or has_grown or before.as_of(monotonic_s).is_stale:
            return Arrivals(monotonic_s)
        return self

    def as_of(self, monotonic_s: float) -> Arrivals:
        """Return the same as of another moment, seconds of the monotonic clock."""
        if self.grew_s is None:
            return self
        return replace(self, idle_s=max(0.0, monotonic_s - self.grew_s))
