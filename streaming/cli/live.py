"""How a job stands: a live table on a terminal, log lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from connectors.web import words
from connectors.web.naming import called
from connectors.web.summary import Level, by_trouble, summarise
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import ViewTotals
from streaming.cli.log import LogFormat
from streaming.cli.progress import Show, progress_lines

_LINES_AROUND = 7
"""Lines of a terminal that are no channel's, the last of them empty."""

_LEVELS = {
    Level.STARTING: "bold",
    Level.FINE: "bold green",
    Level.WARNING: "bold yellow",
    Level.TROUBLE: "bold red",
}
_VERDICTS = {
    Verdict.FAILING: "bold red",
    Verdict.BLIND: "bold magenta",
    Verdict.DEGRADED: "yellow",
    Verdict.WARMING_UP: "dim",
    Verdict.QUIET: "dim",
    Verdict.OK: "green",
}


def following(
    console: Console,
    log_format: LogFormat,
    url: str,
    line: Callable[[Snapshot], str],
) -> AbstractContextManager[Show]:
    """A live table on a terminal; elsewhere, or with a log for programs, log lines.

    Args:
        console: Of standard output.
        log_format: Of the log.
        url: Of the page, without a slash.
        line: A snapshot in one line.
    """
    if log_format is LogFormat.JSON or not console.is_interactive:
        return progress_lines(line)
    return _live_table(console, url)


@contextmanager
def _live_table(console: Console, url: str) -> Iterator[Show]:
    """What is told meanwhile appears above it."""
    with Live(
        console=console,
        auto_refresh=False,
        redirect_stderr=sys.stderr.isatty(),
        vertical_overflow="crop",
    ) as live:

        def show(snapshot: Snapshot) -> None:
            view = live_view(snapshot, url, console.width, console.height)
            live.update(view, refresh=True)

        yield show


@dataclass(frozen=True, slots=True)
class _Figure:
    """A column of the live table.

    Attributes:
        heading: Over it.
        text: A channel's.
        from_width: Characters that a terminal has at least to show it.
        grave: Whether anything but zero is a fault.
    """

    heading: str
    text: Callable[[ChannelTotals], str]
    from_width: int = 0
    grave: bool = False


_FIGURES = (
    _Figure("p50", lambda t: words.percentile(t.definite_latency, 50), 100),
    _Figure("p95", lambda t: words.percentile(t.definite_latency, 95), 80),
    _Figure("unack'd", lambda t: words.number(t.unacknowledged), grave=True),
    _Figure("missing", lambda t: words.number(t.gaps_open), 60),
    _Figure("lost", lambda t: words.number(t.gaps_lost), grave=True),
    _Figure(
        "repaired",
        lambda t: words.share(t.repair_answered, t.repair_answered + t.repair_expired),
        100,
    ),
)


def live_view(snapshot: Snapshot, url: str, width: int, height: int) -> RenderableType:
    """The verdict on everything, the most troubled channels, and where the page is.

    Args:
        snapshot: What is shown.
        url: Of the page, without a slash.
        width: Characters of a line.
        height: Lines that may be used.
    """
    channels = by_trouble(snapshot)
    rows = channels[: max(1, height - _LINES_AROUND)]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("channel", no_wrap=True, overflow="ellipsis", ratio=2)
    table.add_column("verdict", no_wrap=True, overflow="ellipsis", ratio=3)
    figures = [figure for figure in _FIGURES if figure.from_width <= width]
    for figure in figures:
        table.add_column(figure.heading, justify="right", no_wrap=True)
    for channel, totals in rows:
        table.add_row(
            _name(snapshot, channel),
            _verdict(totals, channel in snapshot.muted),
            *(_cell(figure, totals) for figure in figures),
        )
    summary = summarise(snapshot)
    hidden = len(channels) - len(rows)
    more = f"{words.counted(hidden, 'more channel')}   " if hidden else ""
    return Group(
        _one_line(summary.sentence, _LEVELS[summary.level]),
        _one_line(_job(snapshot), "dim"),
        Text(),
        table if rows else Text("no channel has been seen yet", "dim"),
        Text(),
        _one_line(f"{more}{url}/", "dim"),
    )


def _one_line(text: str, style: str) -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _job(snapshot: Snapshot) -> str:
    job = snapshot.job
    return (
        f"{words.number(job.records)} records read, "
        f"{words.number(job.records_behind)} to read, "
        f"event-time lag {words.seconds(job.event_time_lag_seconds)}, "
        f"{words.counted(len(snapshot.channels), 'channel')}"
    )


def _name(snapshot: Snapshot, channel: str) -> Text:
    text = Text(called(snapshot, channel))
    if snapshot.table.of(channel).name:
        # A pattern may have given one name to several.
        text.append(f" {words.shown(channel)}", "dim")
    return text


def _verdict(totals: ViewTotals, muted: bool) -> Text:
    text = Text()
    if muted:
        text.append("muted: ", "dim")
    text.append(words.VERDICTS[totals.verdict], _VERDICTS[totals.verdict])
    if totals.verdict is not Verdict.OK:
        text.append(f" {words.reason(totals.verdict_reason)}")
    return text


def _cell(figure: _Figure, totals: Any) -> Text:
    text = figure.text(totals)
    return Text(text, "bold red" if figure.grave and text != "0" else "")
