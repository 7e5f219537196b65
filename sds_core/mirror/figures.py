"""Figures of a mirror, and their metrics (``sds_mirror_*``)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from sds_core.metrics import Metric, MetricKind, in_seconds, one_sample
from sds_core.mirror.selection import Skip


class Source(enum.StrEnum):
    """How the mirror received a message.

    docs/records.md explains the values, at the header `source`.
    """

    RELAY = "relay"
    FILTER = "filter"
    STORE = "store"


class Loss(enum.StrEnum):
    """Why messages were probably lost before the mirror could receive them."""

    FULL_PAGE = "full_page"
    """A page had as many messages as the node's cache can hold, so the cache may have
    dropped messages."""
    RESUBSCRIBED = "resubscribed"
    """The node had lost the mirror's subscription, and with it the cache."""
    UNREACHABLE = "unreachable"
    """The node was unreachable, so it may have restarted and lost the subscription."""
    PAGE_CUT_OFF = "page_cut_off"
    """The node removed a page's messages from its cache, but the page arrived
    incomplete."""
    UNCLEAN_START = "unclean_start"
    """The mirror was killed, perhaps after it read a page and before it stored the
    page's messages."""


@dataclass
class NodeFigures:
    """Figures of one node; `NODE_METRICS` explains each figure.

    `swept_ms` is None until the first sweep of the node's store.
    """

    is_up: bool = False
    pages: dict[Source, int] = field(default_factory=lambda: dict.fromkeys(Source, 0))
    failures: dict[Source, int] = field(
        default_factory=lambda: dict.fromkeys(Source, 0)
    )
    undecodable: int = 0
    full_pages: int = 0
    swept_ms: int | None = None


@dataclass
class MirrorFigures:
    """Figures of one mirror since it started; `MIRROR_METRICS` explains each figure.

    Attributes:
        losses: Number of probable losses by cause, since the state directory was
            created. If restarts reset the counter, Prometheus would see a counter that
            is always 1 although the mirror is killed again and again.
        spooled: Number of records that wait for Kafka, including heartbeats.
        oldest_spooled_ms: Time of the oldest record that waits for Kafka, Unix ms; None
            if no record waits.
    """

    nodes: dict[str, NodeFigures] = field(default_factory=dict)
    accepted: dict[Source, int] = field(
        default_factory=lambda: dict.fromkeys(Source, 0)
    )
    duplicates: dict[Source, int] = field(
        default_factory=lambda: dict.fromkeys(Source, 0)
    )
    skipped: dict[Skip, int] = field(default_factory=lambda: dict.fromkeys(Skip, 0))
    losses: dict[Loss, int] = field(default_factory=lambda: dict.fromkeys(Loss, 0))
    written: int = 0
    refused: int = 0
    kafka_failures: int = 0
    spooled: int = 0
    spooled_bytes: int = 0
    oldest_spooled_ms: int | None = None
    is_paused: bool = False
    last_seq: int = 0


NODE_METRICS: tuple[Metric[NodeFigures], ...] = (
    one_sample(
        "sds_mirror_node_up",
        "1 if the latest request to the node succeeded.",
        lambda n: int(n.is_up),
    ),
    Metric(
        "sds_mirror_pages_total",
        MetricKind.COUNTER,
        "Pages of messages that the node returned.",
        ("source",),
        lambda n: [((source.value,), count) for source, count in n.pages.items()],
    ),
    Metric(
        "sds_mirror_failures_total",
        MetricKind.COUNTER,
        "Requests to the node that failed.",
        ("source",),
        lambda n: [((source.value,), count) for source, count in n.failures.items()],
    ),
    one_sample(
        "sds_mirror_full_pages_total",
        "Pages that contained the maximum number of messages that the node's cache can "
        "hold, so the cache may have dropped earlier messages.",
        lambda n: n.full_pages,
    ),
    one_sample(
        "sds_mirror_undecodable_messages_total",
        "Messages in the node's answers that could not be read.",
        lambda n: n.undecodable,
    ),
    one_sample(
        "sds_mirror_store_swept_timestamp_seconds",
        "Sender's timestamp up to which the mirror has read the messages of the node's "
        "store.",
        lambda n: in_seconds(n.swept_ms),
    ),
)
"""Metrics of each node of a mirror, labelled `node`."""


MIRROR_METRICS: tuple[Metric[MirrorFigures], ...] = (
    Metric(
        "sds_mirror_messages_total",
        MetricKind.COUNTER,
        "Messages accepted for the first time.",
        ("source",),
        lambda m: [((source.value,), count) for source, count in m.accepted.items()],
    ),
    Metric(
        "sds_mirror_duplicates_total",
        MetricKind.COUNTER,
        "Messages whose hash was already known.",
        ("source",),
        lambda m: [((source.value,), count) for source, count in m.duplicates.items()],
    ),
    Metric(
        "sds_mirror_skipped_total",
        MetricKind.COUNTER,
        "Messages that the mirror does not write, by reason.",
        ("reason",),
        lambda m: [((reason.value,), count) for reason, count in m.skipped.items()],
    ),
    Metric(
        "sds_mirror_probable_losses_total",
        MetricKind.COUNTER,
        "Events in which messages were probably lost before the mirror received them; "
        "a restart with the same state directory does not reset the counter.",
        ("cause",),
        lambda m: [((cause.value,), count) for cause, count in m.losses.items()],
    ),
    one_sample(
        "sds_mirror_written_total",
        "Frames that Kafka has acknowledged.",
        lambda m: m.written,
    ),
    one_sample(
        "sds_mirror_refused_total",
        "Records dropped because Kafka will never accept them.",
        lambda m: m.refused,
    ),
    one_sample(
        "sds_mirror_kafka_failures_total",
        "Writes that Kafka did not acknowledge and that were retried.",
        lambda m: m.kafka_failures,
    ),
    one_sample(
        "sds_mirror_spooled_records",
        "Records on disk that wait for Kafka.",
        lambda m: m.spooled,
    ),
    one_sample(
        "sds_mirror_spooled_bytes",
        "Size of the records on disk that wait for Kafka.",
        lambda m: m.spooled_bytes,
    ),
    one_sample(
        "sds_mirror_oldest_spooled_timestamp_seconds",
        "When the oldest record that waits for Kafka was received.",
        lambda m: in_seconds(m.oldest_spooled_ms),
    ),
    one_sample(
        "sds_mirror_paused",
        "1 while the mirror reads nothing because its spool is full or cannot be "
        "written.",
        lambda m: int(m.is_paused),
    ),
    one_sample(
        "sds_mirror_last_seq",
        "Last sequence number that was assigned to a frame.",
        lambda m: m.last_seq,
    ),
)
"""Metrics of the mirror itself; its own `/metrics` shows them."""
