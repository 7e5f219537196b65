"""Computes the forecasts of one kind of view, in a process of its own.

`python -m streaming.plan_worker` reads an `Order` and writes a `Plan`, in MessagePack.
statsmodels takes seconds of CPU time and some hundred megabytes, which the driver has
for batches and pages.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.history.query import hourly_rows, newest_minute_ms
from connectors.history.schema import KindTables, tables_of
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.planning.errors import ModelMissing
from sds_core.planning.fleet import HourlyRows, forecast_fleet
from sds_core.planning.forecast import ForecastSettings
from sds_core.planning.hours import CLOCK_MS, DAY_MS, last_hour_ms
from sds_core.planning.measures import measures_of
from sds_core.planning.plan import Plan

FIT_DAYS = 56
"""Days of history that forecasts follow; the default of `plan forecast`."""

_LOWEST_PRIORITY = 19
_END_OF_TIME_MS = 1 << 52
"""A row of the future is read too, because it says that a clock jumped."""


class Order(msgspec.Struct):
    """What is to be computed.

    Attributes:
        directory: That of the history.
        prefix: That of the kind of view.
        hidden: Number of views beside `names`.
        now_ms: Wall time, Unix ms.
        epoch_messages: Budget of a participant in a rate-limit epoch.
        seconds: Time after which no further view is begun.
    """

    directory: str
    prefix: str
    names: list[str]
    hidden: int
    now_ms: int
    epoch_messages: int
    seconds: float


def read_history(
    directory: Path,
    tables: KindTables,
    names: Sequence[str] | None,
    days: int,
    now_ms: int,
) -> tuple[HourlyRows, int]:
    """Return the hours of views, and the end of the last whole hour, Unix ms.

    Names of None are all views; the days end at `now_ms`, wall time.

    Raises:
        NoHistory: The directory holds no history.
        DamagedHistory: A file cannot be read.
    """
    measures = measures_of(tables.kind.published)
    rows = hourly_rows(
        directory,
        names,
        now_ms - days * DAY_MS,
        _END_OF_TIME_MS,
        measures.counters,
        measures.gauges,
        tables,
    )
    newest_ms = newest_minute_ms(directory, now_ms + CLOCK_MS, tables) or 0
    return rows, last_hour_ms(newest_ms)


def compute(order: Order) -> Plan:
    """Return the forecasts; what cannot be computed is its `problem`."""
    begun_s = time.monotonic()
    settings = ForecastSettings(epoch_messages=order.epoch_messages)
    tables = tables_of(kinds_of(PROTOCOLS).of(order.prefix))
    try:
        rows, end_ms = read_history(
            Path(order.directory), tables, order.names, FIT_DAYS, order.now_ms
        )
        fleet = forecast_fleet(
            {name: rows.get(name, []) for name in order.names},
            measures_of(tables.kind.published),
            settings,
            end_ms=end_ms,
            now_ms=order.now_ms,
            is_over=lambda: time.monotonic() - begun_s > order.seconds,
        )
    except (NoHistory, DamagedHistory, ModelMissing) as error:
        return Plan(problem=str(error))
    return Plan.of(fleet, order.now_ms, settings.days, settings.coverage, order.hidden)


def main() -> None:
    """Compute what standard input orders."""
    os.nice(_LOWEST_PRIORITY)
    order = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Order)
    sys.stdout.buffer.write(msgspec.msgpack.encode(compute(order)))


if __name__ == "__main__":
    main()
