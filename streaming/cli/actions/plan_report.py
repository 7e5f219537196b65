"""Pages of the commands of `plan`: one HTML file each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from connectors.web.blocks import HeatMap, Range, Ranges, Report, Section, Table
from connectors.web.charts import Chart, Series
from connectors.web.plan_blocks import PlanBlocks, figures_table
from connectors.web.plan_charts import figure_chart, forecast_charts
from connectors.web.report import report_html
from connectors.web.words import bounded
from sds_core.observer.figure_table import Names
from sds_core.observer.figures import Scale
from sds_core.planning.estimates import Estimate
from sds_core.planning.plan import Plan
from sds_core.planning.size import CostModel, Load
from sds_core.text import byte_size, counted, number, utc_time

DRAWN = 50
"""Maximum number of views with charts, so that browsers open a page without delay."""

_LISTED = 1_000
_STEPS = 12


def forecast_report(plan: Plan, names: Names, name_of: Callable[[str], str]) -> str:
    """Return the page of a forecast; `name_of` returns the name of a view, or ""."""

    def called(view: str) -> str:
        name = name_of(view)
        return bounded(f"{name} ({view})" if name else view)

    blocks = PlanBlocks(plan, names, called)
    title = f"Forecast of {counted(len(plan.views), names.one)}"
    if len(plan.views) == 1:
        title = f"Forecast of {names.one} {called(*plan.views)}"
    return report_html(
        Report(
            title,
            [*blocks.lead()],
            [*_forecast_sections(blocks)],
            f"sds-monitor plan forecast, {utc_time(plan.computed_ms or 0)}. A day ends "
            "at the hour at which the history ends.",
        )
    )


def _forecast_sections(blocks: PlanBlocks) -> Iterator[Section]:
    plan, by_bytes = blocks.plan, blocks.by_bytes()
    drawn = by_bytes[:DRAWN]
    band = f"{plan.interval} % of the possible futures lie in each band."
    if any(one.limits for one in plan.views.values()):
        yield Section("When limits are reached", [blocks.limits(_LISTED)])
    if plan.total is not None and len(by_bytes) > 1:
        yield Section(
            f"All {blocks.names.many} together",
            [*forecast_charts(plan.total), figures_table(plan.total, plan)],
            f"The sum of those with a forecast. {band}",
        )
        small = [
            figure_chart(plan.views[view], "bytes", blocks.called(view))
            for view in drawn
        ]
        note = f"Bytes a day; each chart has a scale of its own. {band}"
        yield Section(blocks.names.many.capitalize(), small, note, small=True)
        yield Section("Figures of each", [blocks.views(by_bytes[:_LISTED])])
    for view in drawn:
        one = plan.views[view]
        title = f"{blocks.names.one.capitalize()} {blocks.called(view)}"
        yield Section(title, [*forecast_charts(one), figures_table(one, plan)], band)
    if (without := blocks.without()) is not None:
        yield Section("Without a forecast", [without])


def size_report(
    model: CostModel,
    load: Load,
    history_days: int,
    title: str,
    headings: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    lines: Sequence[str],
) -> str:
    """Return the page about the resources that the monitor needs.

    Each row contains a resource, the amount that the monitor needs, and the error of
    the amount. `lines` has texts for the head of the page.
    """
    most = model.size(load, history_days=history_days).limits[-1].channels
    # The loads in the charts are multiples of a round number of channels.
    step = float(f"{1.2 * max(load.channels, most) / _STEPS:.1g}") / load.channels
    loads = [load.times(step * n) for n in range(1, _STEPS + 1)]
    names = [number(round(one.channels)) for one in loads]
    return report_html(
        Report(
            "What the monitor needs",
            [title, *lines],
            [
                Section("Needs", [Table("Needs", headings, rows)]),
                Section(
                    "If there are more channels",
                    [
                        _batch_chart(model, loads, names),
                        _disk_chart(model, loads, names, history_days),
                    ],
                    "Each channel has the same traffic.",
                ),
            ],
            "sds-monitor plan size: a cost model fitted to the project's benchmarks.",
        )
    )


def _batch_chart(
    model: CostModel, loads: Sequence[Load], names: Sequence[str]
) -> Chart:
    error = model.fits["batch"].error
    series = []
    machines = ((counted(model.measured_cores, "core"), model.measured_cores),)
    for machine, cores in (*machines, ("any number of cores", math.inf)):
        times = [model.batch_s(one, cores) for one in loads]
        spans = [(s * (1 - error), s * (1 + error)) for s in times]
        texts = [f"{s:.2g} s" for s in times]
        series.append(Series(machine, times, texts, spans=spans))
    trigger = loads[0].trigger_s
    series.append(Series.limit(f"Trigger {trigger:g} s", trigger, len(names)))
    note = f"Batches keep up below the line. The band is the error of {error:.0%}."
    return Chart(
        "batch", "Time of a batch by channels", note, Scale.COUNT, names, names[1::2],
        series, "{:g} s".format, heading="Channels",
    )  # fmt: skip


def _disk_chart(
    model: CostModel, loads: Sequence[Load], names: Sequence[str], history_days: int
) -> Chart:
    sizes = [model.size(one, history_days=history_days).needs for one in loads]
    series = []
    for part in ("checkpoint_bytes", "history_bytes", "ledger_bytes_per_day"):
        values = [one[part] for one in sizes]
        series.append(Series(part.split("_")[0], values, [*map(byte_size, values)]))
    note = "Checkpoint, history, and rows of a day in which a destination is away."
    return Chart(
        "disk", "Disk by channels", note, Scale.PARTS, names, names[1::2], series,
        byte_size, heading="Channels",
    )  # fmt: skip


def variants_report(
    title: str,
    lines: Sequence[str],
    figures: Mapping[str, Sequence[tuple[str, Estimate, str]]],
) -> str:
    """Return the page that compares variants; `figures` has each figure per variant."""
    blocks = [_ranges(name, variants) for name, variants in figures.items()]
    note = "Each figure has a scale of its own, from 0."
    section = Section("Figures", blocks, note, small=True)
    foot = "sds-monitor plan what-if: the bars are intervals of 95 %."
    return report_html(Report(title, lines, [section], foot))


def sweep_report(
    title: str,
    keys: Sequence[str],
    cells: Sequence[Mapping[str, Any]],
    figures: Mapping[str, Sequence[tuple[Estimate, str]]],
) -> str:
    """Return the page of a sweep, with a heat map for each figure.

    The rows of a heat map are the values of the first key. The columns are the values
    of the other keys. For a sweep with a single key, the page shows ranges instead of
    heat maps. `figures` has the estimate and a text of each figure for each cell.
    """
    places = [(str(cell[keys[0]]), _others(keys[1:], cell)) for cell in cells]
    corner = f"{keys[0]}, by {', '.join(keys[1:])}"
    blocks: list[HeatMap | Ranges] = []
    for name, values in figures.items():
        if len(keys) > 1:
            shown = [(estimate.value, text) for estimate, text in values]
            blocks.append(
                HeatMap.of(name, corner, dict(zip(places, shown, strict=True)))
            )
        else:
            named = zip(places, values, strict=True)
            rows = [(place, one, text) for (place, _), (one, text) in named]
            blocks.append(_ranges(name, rows, f"By {keys[0]}."))
    note = "Means of the runs with half the width of their 95 % interval."
    foot = "sds-monitor plan sweep --summary"
    return report_html(Report(title, [note], [Section("Figures", blocks)], foot))


def _ranges(
    title: str, values: Sequence[tuple[str, Estimate, str]], note: str = ""
) -> Ranges:
    ranges = [Range(name, e.low, e.value, e.high, text) for name, e, text in values]
    return Ranges(title, ranges, note)


def _others(keys: Sequence[str], cell: Mapping[str, Any]) -> str:
    if len(keys) == 1:
        return str(cell[keys[0]])
    return ", ".join(f"{key} {cell[key]}" for key in keys)
