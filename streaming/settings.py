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
    # At runtime, this import would load numpy in every command.
    from sds_core.observer.settings_table import Values

EARLIEST = "earliest"
LATEST = "latest"

LABEL_BUDGET = 200
"""Default of the maximum number of channels that have their own metric label.

See docs/figures.md.
"""

FORGET_DAYS = 7
"""Default number of days of silence after which a channel is forgotten.

See docs/channels.md.
"""

READ_TASKS = 2
"""Default number of workers that read at the same time in a job on one machine."""

COMMIT_GROUP = "sds-monitor"
"""Default consumer group of the committed offsets, which only other tools read."""


class Part(NamedTuple):
    """A batch has at most `rows` rows until the checkpoint has read `until` records."""

    until: int
    rows: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Ranges of records whose batches failed, so that they are read in smaller batches.

    If one range contains another range, the batches of the inner range are smaller. If
    the checkpoint has no finished batch, `begin` is the position at which its first
    batch starts, as `Position.to_json` returns it. Otherwise, `begin` is None.
    """

    parts: tuple[Part, ...]
    begin: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Upper limits of one batch.

    Attributes:
        rows: Number of Kafka records. Every batch takes about 0.4 s, in addition to the
            time for its records. A job with a large lag therefore catches up fastest
            with large batches (docs/architecture.md).
        size_bytes: Bytes of keys, values and headers, estimated from the mean size of
            the next unread records.
        parts: Smaller limits for the records of failed batches.
    """

    rows: int = 300_000
    size_bytes: int = 256 * 1024 * 1024
    parts: Parts | None = None

    def rows_after(self, records: int) -> int:
        """Return the next row limit of a checkpoint that has read `records` records."""
        parts = () if self.parts is None else self.parts.parts
        rows = [part.rows for part in parts if records < part.until]
        return min([self.rows, *rows])


@dataclass(frozen=True, slots=True)
class Window:
    """Range of record times, Unix ms; the reader skips records outside the range.

    Both ends belong to the range. The job's clock does not advance beyond `last_ms`.
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
        start: Where a new checkpoint starts to read: ``earliest``, ``latest`` or a Unix
            time in ms.
        tasks: Number of workers that read at the same time. If it is 0, one worker per
            core of the session reads.
        skip_lost: Whether the job continues if Kafka deletes unread records. The job
            counts the deleted records.
        window: Range of record times that a job reads before it ends. If None, the
            times are not limited; otherwise, `start` has no effect.
        requests: File with requests to forget views (`streaming.ledger.view_register`).
        answering_ms: See `streaming.position.Unread`.
    """

    kafka: KafkaSettings
    client: Client = Client.CONFLUENT
    limits: BatchLimits = field(default_factory=BatchLimits)
    start: str | int = EARLIEST
    tasks: int = READ_TASKS
    skip_lost: bool = False
    window: Window | None = None
    requests: str | None = None
    answering_ms: int = 0


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of the Spark session.

    Attributes:
        master: URL of the Spark master; None if ``spark-submit`` has started this
            program and sets the master.
        shuffle_partitions: Number of partitions of the state. After the first batch of
            a checkpoint, this number cannot change. If None, it is the number of cores.
            More partitions would cost memory and time in every batch.
    """

    master: str | None = LOCAL
    shuffle_partitions: int | None = None

    @property
    def is_cluster(self) -> bool:
        """Whether the session's tasks may run on other machines."""
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
        history: Settings of the history; None for no history. Without a history, the
            ledger keeps incidents, and the per-minute aggregates of the last hour.
        channel_table: Settings of individual channels, as read at startup.
        observer: Settings of the model that the operator gives. The first job on a
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
        return {"processingTime": f"{round(self.trigger_s * 1000)} milliseconds"}
