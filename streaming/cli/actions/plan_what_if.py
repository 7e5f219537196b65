"""Prints variants of a channel beside it: tables for people, JSON for programs."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from connectors.toml_file import UnreadableToml, read_toml
from sds_core.planning.channel import ChannelPlan, changed
from sds_core.planning.document import rounded
from sds_core.planning.errors import ModelMissing, NoForecast
from sds_core.planning.estimates import Estimate, require_scipy
from sds_core.planning.experiment import check_size
from sds_core.planning.measured_channel import MeasuredChannel, measured_channel
from sds_core.planning.what_if import FigureSource, PlannedFigure, compared
from sds_core.planning.words import with_interval
from sds_core.reading import TableError, read
from sds_core.text import byte_size, counted, printable, shown
from streaming.cli.actions.plan_runs import run_all
from streaming.cli.actions.plan_sources import read_hours
from streaming.cli.output import check_page, print_json, wall_ms, write_page
from streaming.cli.plan_options import PlanSource
from streaming.cli.plan_variants import BASE, MEASURED, Changes, Question

_MOST_NAMED = 5


def print_what_if(question: Question, as_json: bool, html: Path | None) -> None:
    """Print the figures of the base and its variants.

    Args:
        question: What is asked.
        as_json: Whether to print JSON.
        html: File for a page with charts; None without one.

    Raises:
        click.UsageError: A key or value is not allowed, the history gives no plan,
            scipy is not installed, or the page cannot be written.
        click.ClickException: The source cannot be read.
    """
    if html is not None:
        check_page(html)
    try:
        require_scipy()
    except ModelMissing as error:
        raise click.UsageError(str(error)) from error
    measured = None
    if question.plan is not None:
        base = _plan_of(question.plan)
    else:
        assert question.source is not None  # noqa: S101 - one of both is given
        measured = _measured(question.source)
        base = measured.plan
    base = _changed(base, question.assumed, "--assume")
    if measured is not None:
        known = dict(measured.figures)
        known["epoch_used"] = known["epoch_messages"] / base.epoch_messages
        measured = measured._replace(figures=known)
    plans = {BASE: base} | {
        name: _changed(base, changes, name)
        for name, changes in question.variants.items()
    }
    seeds = range(1, question.seeds + 1)
    total = len(plans) * len(seeds)
    with click.progressbar(
        length=total, label=counted(total, "simulation"), file=sys.stderr
    ) as bar:
        outcomes = run_all(plans, seeds, bar.update)
    figures = compared(plans, outcomes)
    if html is not None:
        # jinja and pygal, which tables do not need.
        from streaming.cli.actions.plan_report import variants_report

        lines = [*_changes(question), *(measured.assumed if measured else ())]
        report = variants_report(_title(plans[BASE]), lines, _ranges(figures))
        write_page(report, html)
    if as_json:
        print_json(_document(plans, figures, measured, question))
    else:
        _print_tables(plans, figures, measured, question)


def _plan_of(path: Path) -> ChannelPlan:
    try:
        return read(read_toml(path), ChannelPlan)
    except (UnreadableToml, TableError) as error:
        message = f"{path}: {error}"
        raise click.UsageError(message) from error


def _changed(base: ChannelPlan, changes: Changes, where: str) -> ChannelPlan:
    try:
        plan = changed(base, changes)
        check_size(plan)
    except TableError as error:
        message = f"{where}: {error}"
        raise click.UsageError(message) from error
    return plan


def _measured(source: PlanSource) -> MeasuredChannel:
    now_ms = wall_ms()
    hours = read_hours(source, now_ms)
    if len(hours.rows) > 1:
        names = ", ".join(printable(name) for name in list(hours.rows)[:_MOST_NAMED])
        message = (
            f"the history has {len(hours.rows)} channels such as {names}: give one "
            "with --channel"
        )
        raise click.UsageError(message)
    if not hours.rows:
        message = "no plan: the history has no channel in the last week"
        raise click.UsageError(message)
    ((name, rows),) = hours.rows.items()
    try:
        return measured_channel(
            rows, hours.measures, end_ms=hours.end_ms, now_ms=now_ms
        )
    except (NoForecast, TableError) as error:
        message = f"no plan for {shown(name)}: {error}"
        raise click.UsageError(message) from error


def _document(
    plans: Mapping[str, ChannelPlan],
    figures: Mapping[str, Mapping[str, PlannedFigure]],
    measured: MeasuredChannel | None,
    question: Question,
) -> dict[str, Any]:
    return {
        "schema": 1,
        "seeds": question.seeds,
        "interval": 95,
        "measured": measured
        and {
            "hours": measured.hours,
            "assumed": list(measured.assumed),
            "figures": {name: _number(x) for name, x in measured.figures.items()},
        },
        "plans": {
            name: {
                "changes": question.variants.get(name, question.assumed),
                "settings": _settings(plan),
                "figures": {
                    key: _object(figure) for key, figure in figures[name].items()
                },
            }
            for name, plan in plans.items()
        },
    }


def _settings(plan: ChannelPlan) -> dict[str, Any]:
    return {name: plan.setting(name) for name in plan.__struct_fields__}


def _object(figure: PlannedFigure) -> dict[str, Any]:
    return {
        "source": figure.source.value,
        **_interval(figure.estimate),
        "change": None if math.isnan(figure.change.value) else _interval(figure.change),
    }


def _interval(estimate: Estimate) -> dict[str, float | None]:
    return {name: _number(value) for name, value in estimate._asdict().items()}


def _number(value: float) -> float | None:
    """Return a number as JSON has it: without NaN and infinity."""
    return rounded(value) if math.isfinite(value) else None


class _Row(NamedTuple):
    word: str
    name: str
    unit: str


_ROWS = (
    _Row("bytes a day", "bytes_per_day", "B"),
    _Row("  content", "content_bytes_per_day", "B"),
    _Row("  histories", "history_bytes_per_day", "B"),
    _Row("  filters", "filter_bytes_per_day", "B"),
    _Row("  requests", "repair_bytes_per_day", "B"),
    _Row("  other", "other_bytes_per_day", "B"),
    _Row("of these in sync messages", "sync_bytes_per_day", "B"),
    _Row("of these retransmitted", "retransmission_bytes_per_day", "B"),
    _Row("bytes a message", "bytes_per_message", "B"),
    _Row("bytes a frame with content", "frame_bytes", "B"),
    _Row("delivered at first", "first_pass", "%"),
    _Row("delivered in the end", "eventual", "%"),
    _Row("acknowledged", "acknowledged", "%"),
    _Row("acknowledged after, p50", "ack_p50_s", "s"),
    _Row("acknowledged after, p95", "ack_p95_s", "s"),
    _Row("acknowledged after, p99", "ack_p99_s", "s"),
    _Row("recovered after, p50", "recovery_p50_s", "s"),
    _Row("recovered after, p95", "recovery_p95_s", "s"),
    _Row("recovered after, p99", "recovery_p99_s", "s"),
    _Row("bytes for repair", "repair_overhead", "%"),
    _Row("false acknowledgements", "false_acknowledgements", "ppm"),
    _Row("messages in an epoch, most", "epoch_messages", ""),
    _Row("share of the epoch's budget", "epoch_used", "%"),
    _Row("days to fill a new filter", "days_to_full_filter", ""),
    _Row("monitor: first pass", "monitor_first_pass", "%"),
    _Row("monitor: eventual", "monitor_eventual", "%"),
    _Row("monitor: acknowledged, mean", "monitor_ack_mean_s", "s"),
    _Row("monitor: recovered, mean", "monitor_recovery_mean_s", "s"),
)
_MARKS = {
    FigureSource.CLOSED_FORM: "=",
    FigureSource.SIMULATED: "~",
    FigureSource.BOTH: "≈",
}


def _changes(question: Question) -> Iterator[str]:
    for name, changes in question.variants.items():
        text = ", ".join(f"{key} = {value}" for key, value in changes.items())
        yield f"{name}: {printable(text)}"


def _ranges(
    figures: Mapping[str, Mapping[str, PlannedFigure]],
) -> dict[str, list[tuple[str, Estimate, str]]]:
    """Return name, estimate and text of each variant, by figure."""
    return {
        row.word.strip(): [
            (name, one, _between(one, row.unit))
            for name, of in figures.items()
            for one in [of[row.name].estimate]
        ]
        for row in _ROWS
    }


def _print_tables(
    plans: Mapping[str, ChannelPlan],
    figures: Mapping[str, Mapping[str, PlannedFigure]],
    measured: MeasuredChannel | None,
    question: Question,
) -> None:
    console = Console()
    _print_line(console, _title(plans[BASE]), "bold")
    for line in _changes(question):
        _print_line(console, line)
    columns = {
        name: [_between(figures[name][row.name].estimate, row.unit) for row in _ROWS]
        for name in plans
    }
    if measured:
        known = measured.figures
        columns = {
            MEASURED: [
                _amount(known.get(row.name, math.nan), row.unit) for row in _ROWS
            ]
        } | columns
    words = [f"{row.word} {_MARKS[figures[BASE][row.name].source]}" for row in _ROWS]
    _print_columns(console, "", words, columns)
    changes_of = {
        name: [
            _between(figures[name][row.name].change, row.unit, signed=True)
            for row in _ROWS
        ]
        for name in question.variants
    }
    if changes_of:
        _print_columns(console, "change from the base", words, changes_of)
    _print_line(
        console,
        f"= closed form, ~ mean of {question.seeds} simulations with its 95 % "
        "interval, ≈ both.",
    )
    for line in measured.assumed if measured else ():
        _print_line(console, line)


def _print_columns(
    console: Console,
    heading: str,
    words: Sequence[str],
    columns: Mapping[str, Sequence[str]],
) -> None:
    """Print a table whose cells are not broken, also on a narrow terminal."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column(heading, no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for word, *cells in zip(words, *columns.values(), strict=True):
        table.add_row(Text(word), *cells)
    contents = [[heading, *words], *([name, *of] for name, of in columns.items())]
    needed = sum(4 + max(map(len, column)) for column in contents)
    console.width = max(console.width, needed)
    console.print(table)


def _title(plan: ChannelPlan) -> str:
    return (
        f"{counted(plan.participants, 'participant')}, {plan.messages_per_day:,.6g} "
        f"messages a day, {100 * plan.loss:.3g} % loss, profile {plan.profile}"
    )


def _between(estimate: Estimate, unit: str, *, signed: bool = False) -> str:
    text = with_interval(estimate, lambda value: _amount(value, unit))
    return f"+{text}" if signed and estimate.value > 0 else text


def _amount(value: float, unit: str) -> str:
    if math.isnan(value):
        return "-"
    match unit:
        case "B":
            return f"{'-' if value <= -0.5 else ''}{byte_size(abs(value))}"
        case "%":
            return f"{100 * value:z.2f} %"
        case "ppm":
            return f"{1e6 * value:z.3g} ppm"
        case "s":
            return f"{value:z.1f} s"
    return f"{value:z,.1f}"


def _print_line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style), soft_wrap=True)
