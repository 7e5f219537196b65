"""A planned channel that is simulated and monitored: rows of its history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from connectors.history.schema import NumberedMinute, minute_row
from connectors.simulator.records import simulated_records
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.planning.channel import DAY_S, ChannelPlan, changed
from sds_core.planning.estimates import Estimate, estimated
from sds_core.planning.experiment import Times, run, scenario_of
from sds_core.planning.hours import HOUR_MS, hour_rows, last_hour_ms
from sds_core.planning.measured_channel import MeasuredChannel, measured_channel
from sds_core.planning.measures import measures_of
from sds_core.simulation.truth import Truth
from tests.support.monitor import Monitor, batches

START_MS = 496_112 * HOUR_MS
"""Unix ms: a whole hour in 2026."""

MEASURES = measures_of(kinds_of(PROTOCOLS).of("sds").published)
COMPARED = (
    "bytes_per_day", "bytes_per_message", "monitor_first_pass", "monitor_eventual",
    "monitor_ack_mean_s", "monitor_recovery_mean_s",
)  # fmt: skip


def rows_of(plan: ChannelPlan, hours: int, seed: int) -> list[dict[str, Any]]:
    """Return the rows that a monitor stores of the only channel, by minute."""
    end_s = hours * 3_600.0
    times = Times(0.0, 0.0, end_s, end_s, DAY_S / plan.messages_per_day)
    scenario, truth = scenario_of(plan, times), Truth("watched", seed)
    monitor = Monitor()
    records = list(simulated_records(scenario, seed, START_MS, 1, truth))
    for batch in batches(records):
        monitor.read(*batch)
    ((name, minutes),) = monitor.minutes.items()
    return [
        minute_row(NumberedMinute(told, name, minute.minute_ms, minute.totals))
        for told, minute in enumerate(minutes, start=1)
    ]


def measured_of(plan: ChannelPlan, hours: int, seed: int) -> MeasuredChannel:
    """Return what the monitor measured of a plan that was simulated."""
    rows = hour_rows(rows_of(plan, hours, seed), MEASURES.gauges)
    end_ms = last_hour_ms(rows[-1]["minute"])
    return measured_channel(rows, MEASURES, end_ms=end_ms, now_ms=end_ms)


class Prediction(NamedTuple):
    """A figure of a changed channel.

    Attributes:
        predicted: By what-if, from the channel before the change.
        truth: Measured of the changed channel.
    """

    predicted: Estimate
    truth: float

    @property
    def error(self) -> float:
        """Share of the truth by which the prediction is wrong; NaN if both are NaN."""
        return self.predicted.value / self.truth - 1


def predictions(
    before: ChannelPlan,
    plan: ChannelPlan,
    changes: Mapping[str, str],
    *,
    hours: int,
    seeds: range,
    receptions: int,
) -> dict[str, Prediction]:
    """Return what what-if predicts of a changed setting, beside what happens.

    Args:
        before: What the monitor measured of the channel, see `measured_of`.
        plan: The channel. It is simulated and monitored again after the change.
        changes: The changed settings.
        hours: Length of that simulation.
        seeds: Seeds of what-if; the simulation has another one.
        receptions: Size of the runs of what-if.
    """
    outcomes = [
        run(changed(before, changes), seed, receptions=receptions) for seed in seeds
    ]
    truth = measured_of(changed(plan, changes), hours, seed=1_002).figures
    return {
        name: Prediction(
            estimated([getattr(outcome, name) for outcome in outcomes]), truth[name]
        )
        for name in COMPARED
    }
