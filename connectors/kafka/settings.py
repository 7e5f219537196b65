"""Settings for Kafka, and errors with remedies."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import ClassVar

FRAMES_TOPIC = "sds.frames"
DEAD_LETTER_TOPIC = "sds.dead-letter"
INCIDENTS_TOPIC = "sds.incidents"
MINUTES_TOPIC = "sds.channel-minutes"
VERDICTS_TOPIC = "sds.channel-verdicts"
MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""Maximum message size in a topic that sds-monitor creates, bytes (docs/records.md)."""

MAX_PARTITIONS = 1_000
"""Maximum number of partitions in a topic that sds-monitor creates."""

_NUMBERS_OF_A_TOPIC = 1_000_000
"""Size of the range of partition numbers that each topic gets if several topics are
read as one. No topic has more partitions."""


class Client(enum.StrEnum):
    """Library that reads records from Kafka."""

    CONFLUENT = "confluent-kafka"
    KAFKA_PYTHON = "kafka-python"


class Protocol(enum.StrEnum):
    """Security protocol of the brokers. The values are Kafka's names."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class Mechanism(enum.StrEnum):
    """SASL mechanism."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class KafkaSecurity:
    """Encryption and identity of the client. Files are PEM.

    `ca_file` contains the certificates of the trusted authorities. If it is None, the
    system's authorities are trusted. `certificate_file` and `key_file` contain the
    client's certificate and key, for brokers that require them. `key_password` decrypts
    an encrypted key.
    """

    protocol: Protocol = Protocol.PLAINTEXT
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    mechanism: Mechanism = Mechanism.SCRAM_SHA_512
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def is_encrypted(self) -> bool:
        """Whether the protocol uses TLS."""
        return self.protocol in (Protocol.SSL, Protocol.SASL_SSL)

    @property
    def has_user(self) -> bool:
        """Whether the protocol uses SASL."""
        return self.protocol in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A Kafka cluster and its topics of frames.

    Several topics are read as one topic. For this purpose, each topic gets a range of
    partition numbers, in the order of the topics. Partitions of the first topic keep
    their numbers.

    Attributes:
        bootstrap: One or more ``host:port``, separated by commas.
        topic: One or more topics of frames, separated by commas.
        timeout_s: How long to wait for an unreachable broker, seconds. The default is
            enough for a broker's restart, which takes less than two minutes.
        security: Encryption and identity.
    """

    bootstrap: str
    topic: str = FRAMES_TOPIC
    timeout_s: float = 120.0
    security: KafkaSecurity = KafkaSecurity()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of frames, in the order of `topic`."""
        return tuple(self.topic.split(","))

    def place_of(self, number: int) -> tuple[str, int]:
        """Return the topic of partition `number`, and its number in this topic."""
        index, partition = divmod(number, _NUMBERS_OF_A_TOPIC)
        return self.topics[index], partition

    def partition_name(self, number: int) -> str:
        """Return what follows the word "partition" in texts about partition `number`.

        If the job reads several topics, the text names the topic.
        """
        topic, partition = self.place_of(number)
        return (
            f"{partition} of topic {topic}" if len(self.topics) > 1 else f"{partition}"
        )

    def number_of(self, topic: str, partition: int) -> int:
        """Return a partition's number among the partitions of all topics."""
        return self.topics.index(topic) * _NUMBERS_OF_A_TOPIC + partition


def topic_index(number: int) -> int:
    """Return the index of the topic to which a partition number belongs."""
    return number // _NUMBERS_OF_A_TOPIC


def _restored(
    cls: type[Exception], args: tuple[object, ...], attributes: dict[str, object]
) -> Exception:
    error = cls.__new__(cls)
    # Set the arguments here, because `__new__` drops them if a subclass of OSError has
    # a constructor.
    error.args = args
    vars(error).update(attributes)
    return error


class _Picklable(Exception):
    """Base of errors that Spark may pickle, to send them between driver and workers."""

    def __reduce__(self) -> tuple[object, ...]:
        """Return the parts from which `pickle` restores the error without `__init__`.

        By default, `pickle` calls `__init__` with the error's message only.
        """
        return _restored, (type(self), self.args, vars(self))


class KafkaUnreachable(_Picklable, ConnectionError):
    """No broker answered at the addresses in `bootstrap`."""

    def __init__(self, bootstrap: str, cause: object = "no answer") -> None:
        super().__init__(
            f"Kafka at {bootstrap} cannot be reached ({cause}): "
            "check --bootstrap, and check that the broker runs"
        )


class _Refusal(KafkaUnreachable):
    """A broker refuses a client or a record permanently, so retries do not help."""

    refuses: ClassVar[str]
    """The part of the message that states what is refused, after "Kafka at ..."."""

    def __init__(self, bootstrap: str, cause: str, remedy: str) -> None:
        super().__init__(bootstrap, cause)
        self.cause = cause
        self.args = (f"Kafka at {bootstrap} {self.refuses}, {cause}: {remedy}",)


class KafkaRefused(_Refusal):
    """A broker refuses the client."""

    refuses = "cannot be used"


class RecordRefused(_Refusal):
    """A broker rejects a record or the batch that contains the record."""

    refuses = "refuses a record"


class SecurityUnusable(KafkaUnreachable):
    """A file in `KafkaSecurity` cannot be read or has the wrong content.

    The error is temporary if an operator replaces the files one after another.
    """

    def __init__(self, message: str) -> None:
        # `KafkaUnreachable.__init__` would add the advice to check the broker.
        ConnectionError.__init__(self, message)


class TopicMissing(_Picklable, LookupError):
    """The topic does not exist."""

    def __init__(
        self,
        topic: str,
        bootstrap: str,
        remedy: str = "check --topic, or start the tap that creates the topic",
    ) -> None:
        self.topic = topic
        super().__init__(f"topic {topic} does not exist on {bootstrap}: {remedy}")


class RecordsLost(_Picklable, LookupError):
    """Records at the offsets [first, end) were deleted before they were read."""

    def __init__(self, topic: str, partition: int, first: int, end: int) -> None:
        self.topic = topic
        self.partition = partition
        self.first = first
        self.end = end
        super().__init__(
            f"{topic}:{partition} no longer has the unread offsets {first} to "
            f"{end - 1}, because Kafka's retention deleted these records, or the "
            "topic was recreated: to continue without these records, use "
            "--on-lost-records skip; otherwise use a new --checkpoint"
        )


class TopicReplaced(_Picklable, LookupError):
    """The topic was deleted and recreated after it was read.

    `known` is the id of the topic that was read, and `found` the id of the present
    topic.
    """

    def __init__(self, topic: str, known: str, found: str) -> None:
        self.topic = topic
        self.known = known
        self.found = found
        super().__init__(
            f"topic {topic} was deleted and recreated (id before: {known}, id now: "
            f"{found}): to continue at the start of the new topic, use "
            "--on-lost-records skip; otherwise use a new --checkpoint"
        )


class InvalidTopic(_Picklable, ValueError):
    """Kafka does not allow a topic of this name."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"{topic!r} is not a valid topic name: use at most 249 letters, digits, "
            "'.', '_' and '-'"
        )
        self.topic = topic


_TOPIC_NAME = re.compile("[A-Za-z0-9._-]{1,249}")


def check_topic(topic: str) -> None:
    """Check the name of a topic, without a request to a broker.

    Raises:
        InvalidTopic: Kafka does not allow this name.
    """
    if not _TOPIC_NAME.fullmatch(topic) or topic in (".", ".."):
        raise InvalidTopic(topic)
