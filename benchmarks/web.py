"""Measures what page, API and metrics cost with many channels.

    python -m benchmarks.web --help

Each path is requested a few times from the server of `run`, over a board with figures
of so many channels, each time with changed figures. The ledger has the minutes of each
channel's last hour and its shown verdict. CPU is that of this process, in which a
thread asks; the median counts. Meanwhile another thread asks for `/healthz`.

Limits of the result: all channels have the same few figures, and nothing else runs.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from connectors.web.sources import StoredViews
from sds_core.observer import blob
from sds_core.observer.histogram import Histogram
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import BloomGauge, ChannelMinute, ChannelTotals
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from streaming.board import Board
from streaming.cli.output import wall_ms
from streaming.cli.serving import current_snapshot, status_server
from streaming.ledger.ledger import Ledger
from streaming.ledger.recent import RECENT_MS, RecentMinutes
from streaming.ledger.stores import Stores
from streaming.lookup import Stored
from streaming.position import Position
from streaming.verdicts import VerdictRecorder

_PATHS = (
    "/metrics",
    "/",
    "/?sort=messages",
    "/?sort=messages&find=77",
    "/?window=all",
    "/?window=all&sort=messages",
    "/channel?id=channel-00007&history=false",
    "/taps",
    "/monitor",
    "/readyz",
    "/api/v1/channels",
    "/api/v1/channels?limit=1",
    "/api/v1/taps",
)
_HEADERS = {
    "Accept": "application/openmetrics-text;version=1.0.0,*/*;q=0.5",
    "Accept-Encoding": "gzip",
}
"""As Prometheus asks."""
_TAPS = 3


@dataclass(frozen=True)
class _Job:
    """A job that has only figures; what is stored is that of a real one."""

    board: Board
    stored: Mapping[str, StoredViews]


def totals(number: int, clock_ms: int) -> ChannelTotals:
    """Return figures of a channel, all different from zero."""
    found = ChannelTotals(
        first_event_ms=clock_ms - 86_400_000,
        last_event_ms=clock_ms,
        clock_ms=clock_ms,
        frames={"content.spec": number, "sync.spec": 7, "content.nim": 3},
        verdict=list(Verdict)[number % len(Verdict)],
        verdict_reason="ok",
        verdict_since_ms=clock_ms - 60_000,
        observers=[f"tap-{one}" for one in range(_TAPS)],
        bloom_worst=BloomGauge(10_000 + number, 150_000, 7, clock_ms),
        oldest_in_flight_ms=clock_ms,
    )
    for field in msgspec.structs.fields(ChannelTotals):
        value = getattr(found, field.name)
        if type(value) is int and not value:
            setattr(found, field.name, 1_000 + number)
        elif isinstance(value, Histogram):
            for duration_ms in (100, 700, 3_000, 70_000):
                value.observe(duration_ms + number)
    return found


def packed(channels: int, clock_ms: int) -> dict[str, bytes]:
    """Return packed figures of channels and taps, by key."""
    found = {
        CHANNELS.key(f"channel-{n:05d}"): blob.totals_part(
            blob.pack(totals(n, clock_ms), None)
        )
        for n in range(channels)
    }
    tap = blob.totals_part(blob.pack(TapTotals(clock_ms), None))
    return found | {TAPS.key(f"tap-{one}"): tap for one in range(_TAPS)}


def _record(recent: RecentMinutes, channels: int, clock_ms: int) -> None:
    """Store all minutes of the last hour, and print what the last one costs."""
    figures = {f"channel-{n:05d}": totals(n, clock_ms) for n in range(channels)}
    last_ms = clock_ms // MINUTE_MS * MINUTE_MS - MINUTE_MS
    begun = cost = 0.0
    for minute_ms in range(last_ms - RECENT_MS, last_ms + 1, MINUTE_MS):
        minutes = {
            name: [ChannelMinute(minute_ms, one)] for name, one in figures.items()
        }
        begun, elapsed = time.process_time(), time.monotonic()
        recent.record(minutes)
        cost, elapsed = time.process_time() - begun, time.monotonic() - elapsed
    click.echo(
        f"storing a minute of {channels:,} channels: {1000 * cost:.0f} ms of CPU, "
        f"{1000 * elapsed:.0f} ms"
    )


@contextmanager
def _probed(port: int) -> Iterator[list[float]]:
    """Ask for `/healthz` until the block ends; give the durations in seconds."""
    durations: list[float] = []
    stop = threading.Event()

    def probe() -> None:
        while not stop.wait(0.01):
            begun = time.monotonic()
            _get(port, "/healthz")
            durations.append(time.monotonic() - begun)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield durations
    finally:
        stop.set()
        thread.join()


def _get(port: int, path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers=_HEADERS)
        response = connection.getresponse()
        if response.status != HTTPStatus.OK:
            message = f"{path} is answered with {response.status}: nothing was measured"
            raise click.ClickException(message)
        return response.read()
    finally:
        connection.close()


def _next_batch(board: Board) -> None:
    """Change the figures of the taps and one channel, so that nothing is old."""
    now_ms = wall_ms()
    board.publish(board.following(board.read(packed(1, now_ms))))
    board.set_position(Position(now_ms))


@click.command(help=__doc__)
@click.option("--channels", type=click.IntRange(8), default=20_000)
@click.option("--labels", default=200, help="Channels with a label of their own.")
@click.option("--times", type=click.IntRange(1), default=5)
def main(channels: int, labels: int, times: int) -> None:
    """Request each path some times and print what it costs."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "ledger.sqlite"
        stores = Stores.of(Ledger(path), kinds_of(PROTOCOLS), labels, False, False)
        _measure(stores, channels, labels, times)
        stores.ledger.close()
        size = sum(one.stat().st_size for one in path.parent.iterdir())
        click.echo(f"minutes of the last hour: {size / 1e6:.0f} MB")


def _measure(stores: Stores, channels: int, labels: int, times: int) -> None:
    board, clock_ms = Board(), wall_ms()
    _record(stores.by_kind[CHANNELS.prefix].recent, channels, clock_ms)
    figures = board.read(packed(channels, clock_ms))
    names = tuple(f"channel-{n:05d}" for n in range(min(labels, channels)))
    board.publish(board.following(figures, {CHANNELS.prefix: names}))
    board.set_job(running=True, event_time_lag_seconds=1.0, version="0")
    verdicts = {p: one.verdicts for p, one in stores.by_kind.items()}
    VerdictRecorder(verdicts, board).look(current_snapshot(board), clock_ms)
    job = _Job(board, {p: Stored(one) for p, one in stores.by_kind.items()})
    with status_server(job, "127.0.0.1", 0) as url:
        port = int(url.rpartition(":")[2])
        click.echo(f"{'path':40} CPU ms     bytes  /healthz ms")
        for path in _PATHS:
            costs, size, slowest = [], 0, 0.0
            for _ in range(times):
                _next_batch(board)
                begun = time.process_time()
                size = len(_get(port, path))
                costs.append(time.process_time() - begun)
                _next_batch(board)
                with _probed(port) as durations:
                    _get(port, path)
                slowest = max([slowest, *durations])
            cost = 1000 * statistics.median(costs)
            click.echo(f"{path:40} {cost:6.0f} {size:9,} {1000 * slowest:6.0f}")


if __name__ == "__main__":
    main()
