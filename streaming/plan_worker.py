"""Computes the forecasts of one kind of view, in a separate process.

`python -m streaming.plan_worker` reads an `Order` and writes a `Plan`, in MessagePack.
The process is separate, because statsmodels takes seconds of CPU time and some hundred
megabytes. The driver needs its own CPU time and memory for batches and pages.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.history.query import SPARING, hourly_rows, newest_minute_ms
from connectors.history.schema import KindTables, tables_of
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.planning.errors import ModelMissing
from sds_core.planning.fleet import HourlyRows, forecast_fleet
from sds_core.planning.forecast import ForecastSettings
from sds_core.planning.hours import CLOCK_MS, DAY_MS, SILENCE_MS, last_hour_ms
from sds_core.planning.measures import measures_of
from sds_core.planning.plan import Plan
from streaming.worker import work

FIT_DAYS = 56
"""Days of history on which forecasts are based; the default of `plan forecast`."""

# Number of views in one query. The memory of a query grows with this number.
_VIEWS_AT_ONCE = 10
_END_OF_TIME_MS = 1 << 52
"""Time up to which rows are read, Unix ms: far in the future.

Rows from the future are also read, because they show that a clock jumped.
"""


class Order(msgspec.Struct):
    """A request to forecast the views `names` of one kind from a history.

    Attributes:
        hidden: Number of further views, which get no forecast.
        now_ms: Wall time of the request, Unix ms.
        epoch_messages: Number of messages that one participant may send in a rate-limit
            epoch.
        seconds: After this time of computation, no further forecast is started.
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
    config: Mapping[str, Any] = {},
) -> tuple[HourlyRows, int]:
    """Return hourly rows by view, and when the last whole hour ends, Unix ms.

    If `names` is None, all views are read. The rows begin `days` days before `now_ms`,
    which is wall time, Unix ms.

    Raises:
        NoHistory: The directory holds no history.
        DamagedHistory: A file cannot be read.
    """
    measures = measures_of(tables.kind.published)
    # This is read first, so that all views have the whole of the last hour.
    newest_ms = newest_minute_ms(directory, now_ms + CLOCK_MS, tables, config) or 0
    blocks: list[Sequence[str] | None] = [None]
    if names is not None:
        at_once = _VIEWS_AT_ONCE
        blocks = [names[at : at + at_once] for at in range(0, len(names), at_once)]
    rows: dict[str, Sequence[Mapping[str, Any]]] = {}
    for block in blocks:
        rows |= hourly_rows(
            directory,
            block,
            now_ms - days * DAY_MS,
            _END_OF_TIME_MS,
            measures.counters,
            measures.gauges,
            tables,
            config,
        )
    return rows, last_hour_ms(newest_ms)


def compute(order: Order) -> Plan:
    """Return the forecasts; if they cannot be computed, `problem` is the reason."""
    begun_s = time.monotonic()
    settings = ForecastSettings(epoch_messages=order.epoch_messages)
    tables = tables_of(kinds_of(PROTOCOLS).of(order.prefix))
    try:
        rows, end_ms = read_history(
            Path(order.directory),
            tables,
            order.names,
            FIT_DAYS,
            order.now_ms,
            SPARING,
        )
        if order.now_ms - end_ms > SILENCE_MS:
            # The alert compares the times of limits with now. If the monitor catches up
            # by days, they may have passed although no limit is reached.
            end_ms = last_hour_ms(order.now_ms)
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


if __name__ == "__main__":
    work(Order, compute)
