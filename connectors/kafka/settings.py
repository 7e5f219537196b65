"""How to reach Kafka, and errors that say what to do when it cannot be reached."""

from __future__ import annotations

from dataclasses import dataclass

FRAMES_TOPIC = "sds.frames"
DEAD_LETTER_TOPIC = "sds.dead-letter"
MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""Of the topics that these tools make (contract, 1)."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """One cluster and the topic of frames.

    Attributes:
        bootstrap: ``host:port``, several separated by commas.
        topic: The topic of frames.
        timeout_s: How long an unreachable broker is waited for, seconds. Two
            minutes outlast a rolling restart of a broker.
    """

    bootstrap: str
    topic: str = FRAMES_TOPIC
    timeout_s: float = 120.0


class KafkaUnreachable(ConnectionError):
    """No broker answered.

    Attributes:
        bootstrap: Where it was looked for.
    """

    def __init__(self, bootstrap: str, cause: object = "no answer") -> None:
        self.bootstrap = bootstrap
        super().__init__(
            f"Kafka at {bootstrap} cannot be reached ({cause}): "
            "check --bootstrap and that the broker runs"
        )


class TopicMissing(LookupError):
    """The topic does not exist.

    Attributes:
        topic: Its name.
    """

    def __init__(self, topic: str, bootstrap: str) -> None:
        self.topic = topic
        super().__init__(
            f"topic {topic} does not exist on {bootstrap}: check --topic, or start "
            "the tap that creates it"
        )


class RecordsLost(LookupError):
    """Records that were not read yet are gone from the topic.

    Attributes:
        topic, partition: Where.
        first, end: Offsets [first, end) that are gone.
    """

    def __init__(self, topic: str, partition: int, first: int, end: int) -> None:
        self.topic = topic
        self.partition = partition
        self.first = first
        self.end = end
        super().__init__(
            f"{topic}:{partition} no longer holds offsets {first} to {end - 1}, which "
            "were not read yet (retention, or the topic was made anew): use "
            "--on-lost-records skip to go on without them, or a new --checkpoint"
        )
