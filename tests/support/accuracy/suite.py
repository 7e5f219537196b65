"""The simulations by which the monitor is judged."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from connectors.simulator import scenario_names
from connectors.simulator.records import simulated_records
from connectors.simulator.scenario_files import load_scenario
from sds_core.simulation.comparison import Comparison, compare
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.truth import Truth
from tests.support.accuracy.figures import Figures, figures_of
from tests.support.accuracy.play import PARTITIONS, START_MS, play
from tests.support.monitor import Batch, Monitor, batches

QUIET_WITHOUT_LOSS = "quiet without loss"
"""As `quiet`, in which one transmission in a hundred is lost: here nothing is wrong."""

HOURS = [name for name in scenario_names() if name.endswith("-8h")]
"""Scenarios of eight hours."""

NAMES = [
    # `flood` ends after 90 s, before the first deadline has passed.
    *(
        name
        for name in scenario_names()
        if name not in ("flood", *HOURS) and isinstance(load_scenario(name), Scenario)
    ),
    QUIET_WITHOUT_LOSS,
]

SHORT_S = 9_000
"""Two hours and a half: messages older than an hour are requested and repaired."""

OUTAGE_MS = 3_600_000
_LIVE_MS = 300_000


class Result(NamedTuple):
    """Summary of one simulation.

    Attributes:
        figures: How right the monitor was.
        differing: Figures of its report that are not the truth's.
        totals: The truth's.
    """

    figures: Figures
    differing: list[Comparison]
    totals: Mapping[str, Any]


class CatchUp(NamedTuple):
    """A monitor that was stopped for an hour of clean traffic and then read it.

    Attributes:
        messages: That the taps showed.
        alike: Whether it reported, to the byte, what one reports that never stopped.
        lost: Messages and deliveries that it said to be lost.
        incidents: That it told of.
        verdicts: That it gave after any batch.
    """

    messages: int
    alike: bool
    lost: int
    incidents: int
    verdicts: frozenset[str]


def scenario_of(name: str) -> Scenario:
    """Return one of `NAMES` or `HOURS`."""
    if name != QUIET_WITHOUT_LOSS:
        return _of_sds(name)
    quiet = _of_sds("quiet")
    return replace(quiet, name=name, network=replace(quiet.network, loss=0.0))


@functools.cache
def result_of(name: str, seed: int, is_short: bool = False) -> Result:
    """Simulate a scenario and judge the monitor by it.

    Args:
        name: One of `NAMES` or `HOURS`.
        seed: Of the simulation.
        is_short: Whether to simulate only `SHORT_S` of it.
    """
    scenario = scenario_of(name)
    if is_short:
        scenario = replace(scenario, duration_s=SHORT_S)
    played = play(scenario, seed)
    report = played.monitor.report()
    return Result(
        figures_of(played),
        [one for one in compare(played.truth, report) if not one.same],
        played.truth["totals"],
    )


def catch_up(seed: int, size: int | None) -> CatchUp:
    """Stop a monitor after five minutes, and let it read the next hour later.

    Args:
        seed: Of the simulation.
        size: Records of a batch of that hour; None for all in one.
    """
    clean = _of_sds("clean")
    (channel,) = clean.channels
    scenario = replace(
        clean,
        duration_s=(_LIVE_MS + OUTAGE_MS) / 1000,
        channels=(
            replace(channel, traffic=replace(channel.traffic, mean_interval_s=30.0)),
        ),
    )
    truth = Truth(scenario.name, seed)
    records = list(simulated_records(scenario, seed, START_MS, PARTITIONS, truth))
    stop = next(
        place
        for place, record in enumerate(records)
        if record.timestamp_ms >= START_MS + _LIVE_MS
    )
    steady, stopped = Monitor(), Monitor(restarts=True)
    _read(steady, batches(records, 1))
    _read(stopped, batches(records[:stop], 1))
    verdicts = _read(stopped, batches(records[stop:], size))
    report = stopped.report(with_detail=True)
    totals = report["totals"]
    return CatchUp(
        messages=totals["messages"],
        alike=_text(report) == _text(steady.report(with_detail=True)),
        lost=totals["gaps"]["lost"] + totals["deliveries"]["lost"],
        incidents=len(stopped.incidents),
        verdicts=frozenset(verdicts),
    )


def _of_sds(name: str) -> Scenario:
    scenario = load_scenario(name)
    assert isinstance(scenario, Scenario)
    return scenario


def _read(monitor: Monitor, cut: Iterable[Batch]) -> set[str]:
    """Read batches; return every verdict after any of them."""
    verdicts = set()
    for batch in cut:
        monitor.read(*batch)
        verdicts |= {
            one.verdict.value for one in monitor.snapshot.views["sds"].totals.values()
        }
    return verdicts


def _text(report: Mapping[str, Any]) -> str:
    return json.dumps(report, sort_keys=True)
