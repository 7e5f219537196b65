"""Compares models of daily figures, and says how accurate forecasts are.

    python -m benchmarks.planning
    python -m benchmarks.planning --history DIR

Each model forecasts the bytes of the next week of 40 simulated months, from 30 days of
history. The months have four rates of growth, three sizes of a day's deviation and
three of its dependence on the day before; nothing in them is measured.

With `--history`, it only writes a simulated month that ends today, for
`sds-monitor plan forecast --history DIR`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.statespace.sarimax import SARIMAX
from statsmodels.tsa.statespace.structural import UnobservedComponents

from benchmarks.state import simulated
from sds_core.planning.filters import designed_ids
from sds_core.planning.forecast import ForecastSettings
from sds_core.planning.hours import DAY_MS, Floats
from sds_core.planning.model import PATHS, draw_paths
from tests.support.planning.backtest import Model, backtest, forecast_of
from tests.support.planning.month import MINUTES_A_DAY, Month
from tests.support.planning.stored import store

_MONTHS = 40
_SEED = 1
_WEEK = {"seasonal": 7, "stochastic_seasonal": False}


def _structural(**components: Any) -> Model:
    def draw(values: Floats, days: int) -> Floats:
        model = UnobservedComponents(np.log1p(values), **_WEEK, **components)
        return _drawn(model.fit(disp=False), days, anchor="end")

    return draw


def _smoothing(values: Floats, days: int) -> Floats:
    model = ETSModel(
        np.log1p(values), error="add", trend="add", seasonal="add", seasonal_periods=7
    )
    return _drawn(model.fit(disp=False), days, anchor="end")


def _fourier(begin: int, end: int) -> Floats:
    angles = 2 * np.pi * np.outer(np.arange(begin, end), [1, 2, 3]) / 7
    return np.hstack([np.sin(angles), np.cos(angles)])


def _regression(values: Floats, days: int) -> Floats:
    known = len(values)
    model = SARIMAX(
        np.log1p(values), exog=_fourier(0, known), order=(1, 0, 0), trend="ct"
    )
    ahead = _fourier(known, known + days)
    return _drawn(model.fit(disp=False), days, anchor="end", exog=ahead)


def _same_as_last_week(values: Floats, days: int) -> Floats:
    """Return last week's days with the deviations between earlier weeks."""
    logs = np.log1p(values)
    random = np.random.default_rng(_SEED)
    steps = random.choice(logs[7:] - logs[:-7], size=(days, PATHS))
    again = logs[-7:][np.arange(days) % 7]
    return np.asarray(np.expm1(again[:, None] + steps))


def _drawn(fitted: Any, days: int, **arguments: Any) -> Floats:
    paths = fitted.simulate(
        days, repetitions=PATHS, rng=np.random.default_rng(_SEED), **arguments
    )
    return np.asarray(np.expm1(np.asarray(paths).reshape(days, PATHS)))


MODELS: Mapping[str, Model] = {
    "line, week, AR(1) (used)": draw_paths,
    "line, week, independent days": _structural(
        level="deterministic trend", irregular=True
    ),
    "random walk with drift, week": _structural(level="rwdrift", irregular=True),
    "local level with fixed slope, week": _structural(
        level="local linear deterministic trend"
    ),
    "local linear trend, week": _structural(level="local linear trend"),
    "exponential smoothing (ETS AAA)": _smoothing,
    "SARIMAX, Fourier terms, AR(1)": _regression,
    "last week again": _same_as_last_week,
}


@click.command()
@click.option("--months", type=click.IntRange(1, 1_000), default=_MONTHS)
@click.option("--history", type=click.Path(path_type=Path), help="Write a month here.")
def main(months: int, history: Path | None) -> None:
    """Print a table of models, and the errors of whole forecasts."""
    if history is not None:
        store(history, {"town": _month_until_today().rows()})
        return
    warnings.simplefilter("ignore")
    click.echo("| model | in the 80 % interval | mean error | width | CPU ms |")
    click.echo("|---|---|---|---|---|")
    for name, model in MODELS.items():
        begin_s = time.process_time()
        found = [backtest(number, model) for number in range(months)]
        # The months are made once, by the first model.
        took_ms = 1000 * (time.process_time() - begin_s) / months
        covered = sum(one.covers for one in found) / months
        error = np.mean([one.error for one in found])
        width = np.mean([(one.high - one.low) / one.mid for one in found])
        click.echo(
            f"| {name} | {covered:.0%} | {error:.1%} | {width:.0%} | {took_ms:.0f} |"
        )
    _print_errors()
    click.echo(f"\na record has {_record_bytes():.0f} bytes beside its frame")


def _month_until_today() -> Month:
    """Return a simulated month from a Monday to the last midnight, UTC."""
    today = time.time_ns() // 1_000_000 // DAY_MS
    # The first day of Unix time was a Thursday.
    days = 28 + (today + 3) % 7
    return Month(days=days, messages_a_day=2_800.0, begin_ms=(today - days) * DAY_MS)


def _record_bytes() -> float:
    """Return mean bytes of key, headers and framing of simulated records.

    Kafka's record format takes about 14 bytes for lengths, times and counts, and two
    for each header.
    """
    found = [
        14
        + len(one.key or b"")
        + sum(2 + len(n) + len(v or b"") for n, v in one.headers)
        for one in simulated("spec", 20, 10_000, 1.0)
        if one.value
    ]
    return float(np.mean(found))


def _print_errors() -> None:
    """Print the errors of whole forecasts: bytes, date of the filter, headroom."""
    errors = []
    for seed in range(1, 11):
        channel = Month(seed=seed, messages_a_day=2_800.0)
        found = forecast_of(channel, ForecastSettings())
        week = channel.bytes_by_day[30:].mean()
        ids = np.cumsum(channel.grown["messages"])
        full = int(np.searchsorted(ids, designed_ids(channel.filter_bits, 10)))
        at_ms = next(one.at_ms for one in found.limits if one.name == "filter_ids")
        most = channel.epoch_messages_max[30 * MINUTES_A_DAY :].max()
        if at_ms is None or full == len(ids):
            continue
        errors.append(
            (
                abs(found.figures["bytes"].week.mid / week - 1),
                abs((at_ms - channel.begin_ms) / DAY_MS * MINUTES_A_DAY / full - 1),
                abs(found.figures["epoch_headroom"].week.mid / (1 - most / 100) - 1),
            )
        )
    click.echo(f"\n| error in {len(errors)} months | mean | greatest |\n|---|---|---|")
    names = (
        "bytes of the next week",
        "date on which the filter reaches its limit",
        "epoch headroom",
    )
    for name, column in zip(names, np.array(errors).T, strict=True):
        click.echo(f"| {name} | {column.mean():.1%} | {column.max():.1%} |")


if __name__ == "__main__":
    main()
