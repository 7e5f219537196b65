"""Settings of the job, its source, its Spark session and its history.

Commands check settings before they load Spark and Kafka clients, so this module imports
neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from connectors.kafka.settings import (
    DEAD_LETTER_TOPIC,
    INCIDENTS_TOPIC,
    MINUTES_TOPIC,
    VERDICTS_TOPIC,
    Client,
    KafkaSettings,
)
from sds_core.observer.channel_table import ChannelTable
from streaming.master import LOCAL, is_local

if TYPE_CHECKING:
    # The import loads numpy, and every command reads these settings.
    from sds_core.observer.settings_table import Values

EARLIEST = "earliest"
LATEST = "latest"

LABEL_BUDGET = 200
"""Number of channels that have a metric label of their own (docs/figures.md)."""

FORGET_DAYS = 7
"""Days of silence after which a channel is forgotten (docs/channels.md)."""

READ_TASKS = 2
"""Number of workers that read at the same time on one machine."""

COMMIT_GROUP = "sds-monitor"
"""Consumer group under which offsets are committed for other tools."""


class Part(NamedTuple):
    """Row limit of a batch until the checkpoint has read `until` records."""

    until: int
    rows: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Records of failed batches, which are read in smaller batches.

    If one part contains another part, the inner part has smaller batches. `begin` is
    the position at which the checkpoint's first batch starts, as `Position.to_json`
    returns it; None if a batch was finished.
    """

    parts: tuple[Part, ...]
    begin: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Upper limits of one batch.

    Attributes:
        rows: Number of Kafka records. A batch has about 0.4 s of fixed cost, so large
            batches catch up fastest (docs/architecture.md).
        size_bytes: Bytes of keys, values and headers, estimated from the mean size of
            the next records.
    """

    rows: int = 300_000
    size_bytes: int = 256 * 1024 * 1024
    parts: Parts | None = None

    def rows_after(self, records: int) -> int:
        """Return the row limit of the next batch, after `records` records were read."""
        parts = () if self.parts is None else self.parts.parts
        rows = [part.rows for part in parts if records < part.until]
        return min([self.rows, *rows])


@dataclass(frozen=True, slots=True)
class Window:
    """Record times [first_ms, last_ms], Unix ms; the reader skips other records.

    The clock of the job does not pass `last_ms`.
    """

    first_ms: int
    last_ms: int

    def __contains__(self, timestamp_ms: int) -> bool:
        """Whether a record time is in the window."""
        return self.first_ms <= timestamp_ms <= self.last_ms


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Settings of the reader, on the driver and in the workers.

    Attributes:
        start: ``earliest``, ``latest`` or a Unix time in ms: where a new checkpoint
            starts to read.
        tasks: Number of workers that read at the same time; 0 for the session's number
            of cores.
        skip_lost: Whether the job continues if Kafka deletes unread records. The job
            counts the deleted records.
        window: Record times to read, for a job that ends; replaces `start`.
        requests: File with requests to forget views (`streaming.ledger.view_register`).
    """

    kafka: KafkaSettings
    client: Client = Client.CONFLUENT
    limits: BatchLimits = field(default_factory=BatchLimits)
    start: str | int = EARLIEST
    tasks: int = READ_TASKS
    skip_lost: bool = False
    window: Window | None = None
    requests: str | None = None


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of the Spark session.

    Attributes:
        master: URL of the Spark master; None if ``spark-submit`` has started this
            program and sets the master.
        shuffle_partitions: Number of partitions of the state, which the first batch of
            a checkpoint fixes. None: the number of cores, because each partition costs
            memory and time in every batch.
    """

    master: str | None = LOCAL
    shuffle_partitions: int | None = None

    @property
    def is_cluster(self) -> bool:
        """Whether other machines may do the work."""
        return self.master is None or not is_local(self.master)


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """Settings of the history; a row is deleted after `days` of event time."""

    directory: Path
    days: int = 30
    has_topics: bool = True
    incidents_topic: str = INCIDENTS_TOPIC
    minutes_topic: str = MINUTES_TOPIC
    verdicts_topic: str = VERDICTS_TOPIC


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Settings of one job.

    Attributes:
        trigger_s: Minimum time between two batches, seconds.
        until_caught_up: Whether the job ends when it has read everything that the topic
            holds at startup.
        report_detail: Whether every definite acknowledgement is stored for the report.
        dead_letter_topic: Topic for undecodable records; None to only count them.
        group: Consumer group to which offsets are committed; None for no commits.
        history: If None, the ledger keeps incidents, and the per-minute aggregates of
            the last hour.
        channel_table: Settings of channels at startup.
        observer: The model's settings that the operator gives. The first start of a
            checkpoint fixes all settings of the model.
        forget_days: Days of silence, in event time, after which a channel is forgotten;
            0 for never.
    """

    source: SourceSettings
    checkpoint: Path
    trigger_s: float = 1.0
    until_caught_up: bool = False
    report_detail: bool = False
    label_budget: int = LABEL_BUDGET
    dead_letter_topic: str | None = DEAD_LETTER_TOPIC
    group: str | None = COMMIT_GROUP
    history: HistorySettings | None = None
    channel_table: ChannelTable = field(default_factory=ChannelTable)
    observer: Values = field(default_factory=dict)
    forget_days: int = FORGET_DAYS

    @property
    def forget_ms(self) -> int:
        """The value of `forget_days` in milliseconds."""
        return self.forget_days * 86_400_000

    @property
    def trigger(self) -> dict[str, Any]:
        """Arguments of Spark's ``trigger``."""
        if self.until_caught_up:
            return {"availableNow": True}
        return {"processingTime": f"{self.trigger_s:g} seconds"}
