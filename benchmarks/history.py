"""Measures how much space the history takes per channel and day.

    python -m benchmarks.history --help

Simulated traffic goes through the views of some channels in batches of a minute. Their
incidents and minutes are written as the job writes them: to the topics of an embedded
broker, and to a Parquet file per minute; these files are compacted at the end.

Limits of the result: the more figures of a channel change, the more space it takes, and
a simulated network with little loss has few incidents.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from benchmarks.data import as_read
from benchmarks.measured import store
from connectors.broker.broker import EmbeddedBroker
from connectors.history.parquet import ParquetHistory
from connectors.history.schema import (
    CHANNEL_MINUTES,
    INCIDENTS,
    NumberedIncident,
    NumberedMinute,
    incident_row,
    minute_row,
)
from connectors.history.topics import HistoryTopics
from connectors.kafka.settings import INCIDENTS_TOPIC, MINUTES_TOPIC, KafkaSettings
from connectors.simulator.records import simulated_records
from sds_core.observer.incidents import ChannelIncident, Incident
from sds_core.observer.record import RawRecord
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.digest import ChannelDigest
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelMinute
from sds_core.planning.measured import HistoryCost
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth
from streaming.chunk import Chunk

_START_MS = 1_760_054_400_000
"""Start of a day in UTC."""
_MINUTE_MS = 60_000
_DAY_S = 86_400
_COMPACT_EVERY = 10
"""Minutes of simulated time between two compactions."""


def simulated(channels: int, messages_a_day: int, hours: float) -> Iterator[RawRecord]:
    """Return the records of some channels with 20 participants each."""
    scenario = Scenario.from_mapping(
        {
            "name": "history",
            "description": "size of the history",
            "duration_s": hours * 3600,
            "participants": 20,
            "channels": [
                {
                    "name": f"channel-{number:03d}",
                    "participants": 20,
                    "traffic": {"mean_interval_s": _DAY_S / messages_a_day},
                }
                for number in range(channels)
            ],
            "network": {"loss": 0.01},
            "taps": [{"name": "tap"}],
        }
    )
    return as_read(simulated_records(scenario, 1, _START_MS, 1, Truth("history", 1)))


def batches(records: Iterator[RawRecord]) -> Iterator[tuple[int, Chunk]]:
    """Yield the end of each minute, Unix ms, and the chunk of its records."""
    chunk, end_ms = Chunk(0, 0), _START_MS + _MINUTE_MS
    for record in records:
        if record.timestamp_ms >= end_ms:
            yield end_ms, chunk
            end_ms += _MINUTE_MS
        chunk.add(record, 1 << 62)
    yield end_ms, chunk


@click.command(help=__doc__)
@click.option("--channels", default=5)
@click.option("--messages-a-day", default=10_000, help="In each channel.")
@click.option("--hours", default=24.0, help="Virtual hours.")
@click.option("--publish", is_flag=True, help="Write the figures of `plan size`.")
def main(channels: int, messages_a_day: int, hours: float, publish: bool) -> None:
    """Write the history of a simulation and print its size."""
    with (
        tempfile.TemporaryDirectory(prefix="sds-monitor-bench-") as place,
        EmbeddedBroker(Path(place) / "kafka") as broker,
    ):
        topics = HistoryTopics(KafkaSettings(broker.bootstrap))
        history = ParquetHistory(Path(place) / "history")
        views: dict[str, ChannelView] = defaultdict(ChannelView)
        event_count = outbox_bytes = 0
        for number, (end_ms, chunk) in enumerate(
            batches(simulated(channels, messages_a_day, hours))
        ):
            incidents, minutes = [], []
            for channel, event in _events(views, chunk, end_ms):
                event_count += 1
                outbox_bytes += len(msgspec.msgpack.encode(event))
                if isinstance(event, Incident):
                    incident = ChannelIncident(channel, event, tap_hole=False)
                    row = incident_row(NumberedIncident(event_count, incident))
                    incidents.append(row)
                else:
                    minute = NumberedMinute(
                        event_count, channel, event.minute_ms, event.totals
                    )
                    minutes.append(minute_row(minute))
            for table, rows in ((INCIDENTS, incidents), (CHANNEL_MINUTES, minutes)):
                topics.write(table, rows)
                history.write(table, rows)
            if number % _COMPACT_EVERY == 0:
                history.compact(now_ms=0)
        topics.close()
        running = _bytes(Path(place), "history/*/*/*.parquet")
        history.compact(now_ms=1 << 62)
        complete = _bytes(Path(place), "history/*/*/*.parquet")
        days = channels * hours / 24
        click.echo(f"{channels} channels, {hours:g} h; for each channel and day")
        click.echo(f"  files: {complete / days:,.0f} B", nl=False)
        click.echo(f" ({running / days:,.0f} B until the day is complete)")
        click.echo(
            f"  in the outbox, if a destination is unreachable: "
            f"{outbox_bytes / days:,.0f} B"
        )
        for topic in (INCIDENTS_TOPIC, MINUTES_TOPIC):
            size = _bytes(Path(place), f"kafka/**/{topic}-*/*.log")
            click.echo(f"  topic {topic}: {size / days:,.0f} B")
        if publish:
            figures = (complete / days, running / days, outbox_bytes / days)
            store("history", HistoryCost(messages_a_day, *map(round, figures)))


def _events(
    views: dict[str, ChannelView], chunk: Chunk, end_ms: int
) -> Iterator[tuple[str, Incident | ChannelMinute]]:
    """Apply a chunk to the views; yield incidents and minutes with their channel."""
    digests: dict[str, list[ChannelDigest]] = {channel: [] for channel in views}
    for row in chunk.take_rows():
        prefix, _, name = row.key.partition(":")
        if prefix == CHANNELS.prefix:
            digest = msgspec.msgpack.decode(row.digest, type=ChannelDigest)
            digests.setdefault(name, []).append(digest)
    for channel, some in digests.items():
        for event in views[channel].apply(some, end_ms):
            if isinstance(event, Incident | ChannelMinute):
                yield channel, event


def _bytes(place: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in place.glob(pattern))


if __name__ == "__main__":
    main()
