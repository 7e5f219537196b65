"""Prints the figures of a planned channel and its variants, as tables or JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from connectors.toml_file import UnreadableToml, read_toml
from sds_core.planning.channel import ChannelPlan, changed
from sds_core.planning.document import estimate_object, rounded
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
from streaming.cli.exit_codes import wrong_use
from streaming.cli.output import check_page, print_json, wall_ms, write_page
from streaming.cli.plan_options import BASE, MEASURED, Changes, PlanSource, Question
from streaming.cli.tables import print_line, print_table, shown_progress

_MOST_NAMED = 5


def print_what_if(question: Question, as_json: bool, html: Path | None) -> None:
    """Print the figures of the base plan and its variants; if requested, write a page.

    Raises:
        click.UsageError: A plan has an unknown key or an invalid value, the hours of
            the source do not suffice for a plan, scipy is not installed, or the page
            cannot be written.
    """
    if html is not None:
        check_page(html)
    with wrong_use(ModelMissing):
        require_scipy()
    measured = None
    if question.plan is not None:
        with wrong_use(UnreadableToml, TableError, where=f"{question.plan}: "):
            base = read(read_toml(question.plan), ChannelPlan)
    else:
        assert question.source is not None  # noqa: S101 - one of the two is given
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
    click.echo(counted(total, "simulation"), err=True)
    with shown_progress("simulation", total) as count:
        outcomes = run_all(plans, seeds, count)
    figures = compared(plans, outcomes)
    if html is not None:
        # This import loads jinja and pygal, which are not needed to print tables.
        from streaming.cli.actions.plan_report import variants_report

        lines = [*_changes(question), *(measured.assumed if measured else ())]
        report = variants_report(_title(plans[BASE]), lines, _ranges(figures))
        write_page(report, html)
    if as_json:
        print_json(_document(plans, figures, measured, question))
    else:
        _print_tables(plans, figures, measured, question)


def _changed(base: ChannelPlan, changes: Changes, where: str) -> ChannelPlan:
    with wrong_use(TableError, where=f"{where}: "):
        plan = changed(base, changes)
        check_size(plan)
    return plan


def _measured(source: PlanSource) -> MeasuredChannel:
    now_ms = wall_ms()
    hours = read_hours(source, now_ms)
    if len(hours.rows) > 1:
        names = ", ".join(printable(name) for name in list(hours.rows)[:_MOST_NAMED])
        message = (
            f"the history has {len(hours.rows)} channels, such as {names}: give one "
            "with --channel"
        )
        raise click.UsageError(message)
    if not hours.rows:
        message = (
            "no plan is possible, because the history has no channel in the last week"
        )
        raise click.UsageError(message)
    ((name, rows),) = hours.rows.items()
    with wrong_use(NoForecast, TableError, where=f"no plan for {shown(name)}: "):
        return measured_channel(
            rows, hours.measures, end_ms=hours.end_ms, now_ms=now_ms
        )


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
            "figures": {name: rounded(x) for name, x in measured.figures.items()},
        },
        "plans": {
            name: {
                "changes": question.variants.get(name, question.assumed),
                "settings": plan.settings(),
                "figures": {key: _object(one) for key, one in figures[name].items()},
            }
            for name, plan in plans.items()
        },
    }


def _object(figure: PlannedFigure) -> dict[str, Any]:
    change = figure.change
    return {
        "source": figure.source.value,
        **estimate_object(figure.estimate),
        "change": None if math.isnan(change.value) else estimate_object(change),
    }


ROWS = (
    ("bytes a day", "bytes_per_day", "B"),
    ("  content", "content_bytes_per_day", "B"),
    ("  histories", "history_bytes_per_day", "B"),
    ("  filters", "filter_bytes_per_day", "B"),
    ("  requests", "repair_bytes_per_day", "B"),
    ("  other", "other_bytes_per_day", "B"),
    ("of these in sync messages", "sync_bytes_per_day", "B"),
    ("of these retransmitted", "retransmission_bytes_per_day", "B"),
    ("bytes a message", "bytes_per_message", "B"),
    ("bytes a frame with content", "frame_bytes", "B"),
    ("delivered at first", "first_pass", "%"),
    ("delivered in the end", "eventual", "%"),
    ("acknowledged", "acknowledged", "%"),
    ("acknowledged after, p50", "ack_p50_s", "s"),
    ("acknowledged after, p95", "ack_p95_s", "s"),
    ("acknowledged after, p99", "ack_p99_s", "s"),
    ("recovered after, p50", "recovery_p50_s", "s"),
    ("recovered after, p95", "recovery_p95_s", "s"),
    ("recovered after, p99", "recovery_p99_s", "s"),
    ("bytes for repair", "repair_overhead", "%"),
    ("false acknowledgements", "false_acknowledgements", "ppm"),
    ("messages in an epoch, most", "epoch_messages", ""),
    ("share of the epoch's budget", "epoch_used", "%"),
    ("days to fill a new filter", "days_to_full_filter", ""),
    ("monitor: first pass", "monitor_first_pass", "%"),
    ("monitor: eventual", "monitor_eventual", "%"),
    ("monitor: acknowledged, mean", "monitor_ack_mean_s", "s"),
    ("monitor: recovered, mean", "monitor_recovery_mean_s", "s"),
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
    return {
        word.strip(): [
            (variant, one, _between(one, unit))
            for variant, of in figures.items()
            for one in [of[name].estimate]
        ]
        for word, name, unit in ROWS
    }


def _print_tables(
    plans: Mapping[str, ChannelPlan],
    figures: Mapping[str, Mapping[str, PlannedFigure]],
    measured: MeasuredChannel | None,
    question: Question,
) -> None:
    console = Console()
    print_line(console, _title(plans[BASE]), "bold")
    for line in _changes(question):
        print_line(console, line)
    marks = {
        name: _mark(of[name].source for of in figures.values()) for _, name, _ in ROWS
    }
    known = measured.figures if measured else None
    rows = [
        [
            f"{word} {marks[name]}",
            *([] if known is None else [_amount(known.get(name, math.nan), unit)]),
            *(_between(of[name].estimate, unit) for of in figures.values()),
        ]
        for word, name, unit in ROWS
    ]
    headings = ["", *([] if known is None else [MEASURED]), *plans]
    print_table(console, headings, rows, is_whole=True)
    if question.variants:
        changes = [
            [
                f"{word} {marks[name]}",
                *(
                    _between(figures[variant][name].change, unit, signed=True)
                    for variant in question.variants
                ),
            ]
            for word, name, unit in ROWS
        ]
        headings = ["change from the base", *question.variants]
        print_table(console, headings, changes, is_whole=True)
    print_line(
        console,
        f"= closed form, ~ mean of {question.seeds} simulations with its 95 % "
        "interval, ≈ both.",
    )
    for line in measured.assumed if measured else ():
        print_line(console, line)


def _title(plan: ChannelPlan) -> str:
    return (
        f"{counted(plan.participants, 'participant')}, {plan.messages_per_day:,.6g} "
        f"messages a day, {100 * plan.loss:.3g} % loss, profile {plan.profile}"
    )


def _mark(sources: Iterable[FigureSource]) -> str:
    # If participants are offline, some figures have no closed form.
    first, *others = {*sources}
    return _MARKS[FigureSource.BOTH if others else first]


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
