"""Traces messages of records as ``sds-monitor trace`` does."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from connectors.kafka.producer import TopicRecord
from connectors.simulator.records import AnyScenario, simulation_of
from sds_core.observer.protocols import PROTOCOLS, by_name
from sds_core.observer.record import RawRecord
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tracing import Subject
from sds_core.trace.trace import Trace, TraceReader
from sds_core.wire import decode
from streaming.trace_feed import TraceFeed
from tests.support.monitor import Monitor, batches

START_MS = 1_760_000_000_000
_NEVER_MS = 1 << 62
_AT_ONCE = 5_000


@dataclass(frozen=True)
class Simulated:
    """A simulation that the monitor has read.

    Attributes:
        records: What the taps wrote.
        truth: The truth's document.
        monitor: After the last record.
        end_ms: Its clock then, Unix ms.
    """

    records: Sequence[TopicRecord]
    truth: Mapping[str, Any]
    monitor: Monitor
    end_ms: int

    def trace(
        self, channel: str, message_ids: Iterable[str], protocol: str = "sds"
    ) -> list[Trace]:
        """Trace messages of a channel or group, `_AT_ONCE` in one pass."""
        ids = [*message_ids]
        return [
            trace
            for begin in range(0, len(ids), _AT_ONCE)
            for trace in traced(
                self.records,
                channel,
                ids[begin : begin + _AT_ONCE],
                self.end_ms,
                protocol,
            )
        ]


def simulated(scenario: AnyScenario, seed: int = 1, partitions: int = 1) -> Simulated:
    """Simulate a scenario, and let the monitor read what the taps write."""
    records, truth = simulation_of(scenario, seed, START_MS, partitions)
    run = read(list(records))
    return replace(run, truth=truth.document())


def read(records: Sequence[TopicRecord]) -> Simulated:
    """Let the monitor read records; the truth has only the ids of all messages."""
    monitor, clock_ms = Monitor(), 0
    for batch, clock_ms in batches(records):
        monitor.read(batch, clock_ms)
    ids: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for record in records:
        if record.key is not None and "protocol" not in dict(record.headers):
            frame = decode(record.value)
            entries = (*frame.causal_history, *frame.repair_request)
            named = (frame.message_id, *(one.message_id for one in entries))
            ids[frame.channel_id].update((one, {}) for one in named)
    return Simulated(records, {"messages": ids}, monitor, clock_ms)


def traced(
    records: Iterable[TopicRecord],
    channel: str,
    message_ids: Iterable[str],
    end_ms: int,
    protocol: str = "sds",
) -> list[Trace]:
    """Trace messages in the records of a topic.

    Args:
        records: In topic order.
        channel: The channel; of MVDS the group.
        message_ids: Ids of the messages.
        end_ms: The clock at the end, Unix ms.
        protocol: Name of the protocol.
    """
    subjects = [Subject(channel, one) for one in message_ids]
    kind = by_name(PROTOCOLS)[protocol]
    reader = TraceReader(kind, subjects, DEFAULTS, has_all_numbers=True)
    assert kind.tracing is not None
    key = channel.encode() if kind.tracing.is_keyed else None
    feed = TraceFeed(reader, protocol, key, _NEVER_MS)
    offsets: defaultdict[int, itertools.count[int]] = defaultdict(itertools.count)
    for record in records:
        feed.add(
            RawRecord(
                record.partition,
                next(offsets[record.partition]),
                record.timestamp_ms,
                record.key,
                record.value,
                record.headers,
            )
        )
    return feed.traces(end_ms)
