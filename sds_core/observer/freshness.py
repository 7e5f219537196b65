"""Whether what is known of the topic is still fresh: when Kafka answered last.

While Kafka does not answer, every figure stays as it was, and would look as good as
before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

STALE_S = 15.0
"""Seconds without an answer from Kafka after which the figures count as old. Longer
than a change of a partition's leader, and three times a heartbeat's interval."""


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
