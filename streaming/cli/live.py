"""Progress of a job: a live table on a terminal, or log lines."""

from __future__ import annotations

import sys
import time
from collections import Counter
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
from connectors.web.reasons import reason_of
from connectors.web.summary import Level, names_by_trouble, summarise
from sds_core.observer.protocols import ROOT_KIND
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.verdict import Verdict
from sds_core.observer.view_totals import ViewTotals
from sds_core.text import counted, number
from streaming.cli.log import FIGURES, LogFormat, logger

Display = Callable[[Snapshot], None]
"""Displays the progress of a job; called about once a second."""

_LOG_EVERY_S = 10.0

_LINES_AROUND = 7
"""Number of lines above and below the channels in the live display, including an empty
last line."""

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


def progress_display(
    console: Console, log_format: LogFormat, url: str, line: Callable[[Snapshot], str]
) -> AbstractContextManager[Display]:
    """Display a job's progress: as a live table on a terminal, else as log lines.

    `line` returns the text of a log line. If the log is in JSON, the progress is logged
    even on a terminal. `url` does not end with a slash.
    """
    if log_format is LogFormat.JSON or not console.is_interactive:
        return logged_progress(line)
    return _live_table(console, url)


@contextmanager
def _live_table(console: Console, url: str) -> Iterator[Display]:
    """Display a table that each update replaces; log lines appear above the table."""
    with Live(
        console=console,
        auto_refresh=False,
        redirect_stderr=sys.stderr.isatty(),
        vertical_overflow="crop",
    ) as live:

        def display(snapshot: Snapshot) -> None:
            view = live_view(snapshot, url, console.width, console.height)
            live.update(view, refresh=True)

        yield display


@dataclass(frozen=True, slots=True)
class _Figure:
    """A column of the live table; `text` turns a channel's totals into a cell's text.

    The column is shown only if the terminal is at least `from_width` characters wide.
    In a `grave` column, every value except zero is a fault, and is red.
    """

    heading: str
    text: Callable[[Any], str]
    from_width: int = 0
    grave: bool = False


def _standing(field: str, totals: Any) -> str:
    """Return a figure as the page shows it: without retracted events."""
    figure = next(one for one in ROOT_KIND.published.figures if one.field == field)
    return number(figure.standing(totals))


_FIGURES = (
    _Figure("p50", lambda t: words.percentile(t.definite_latency, 50), 100),
    _Figure("p95", lambda t: words.percentile(t.definite_latency, 95), 80),
    _Figure("unack'd", lambda t: number(t.unacknowledged), grave=True),
    _Figure("missing", lambda t: number(t.gaps_open), 60),
    _Figure("undeliv'd", lambda t: _standing("deliveries_lost", t), 60, grave=True),
    _Figure("lost", lambda t: _standing("gaps_lost", t), grave=True),
    _Figure(
        "repaired",
        lambda t: words.share(t.repair_answered, t.repair_answered + t.repair_expired),
        100,
    ),
)

_NO_CHANNEL = "no channel has been seen yet"


def live_view(snapshot: Snapshot, url: str, width: int, height: int) -> RenderableType:
    """Render the overall verdict, the channels with the worst verdicts, and the URL.

    `width` is the terminal's width in characters, and `height` is its number of lines.
    """
    views = snapshot.views[ROOT_KIND.prefix]
    channels = names_by_trouble(views)
    rows = channels[: max(1, height - _LINES_AROUND)]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("channel", no_wrap=True, overflow="ellipsis", ratio=2)
    table.add_column("verdict", no_wrap=True, overflow="ellipsis", ratio=3)
    figures = [figure for figure in _FIGURES if figure.from_width <= width]
    for figure in figures:
        table.add_column(figure.heading, justify="right", no_wrap=True)
    for channel in rows:
        totals = views.totals[channel]
        table.add_row(
            _name(snapshot, channel),
            _verdict(snapshot, totals, channel in views.muted),
            *(_cell(figure, totals) for figure in figures),
        )
    summary = summarise(snapshot)
    nothing = "all channels have ended" if snapshot.all_ended else _NO_CHANNEL
    hidden = len(channels) - len(rows)
    more = f"{counted(hidden, 'more channel')}   " if hidden else ""
    return Group(
        _one_line(summary.sentence, _LEVELS[summary.level]),
        _one_line(_job(snapshot), "dim"),
        Text(),
        table if rows else Text(nothing, "dim"),
        Text(),
        _one_line(f"{more}{url}/", "dim"),
    )


def _one_line(text: str, style: str) -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _job(snapshot: Snapshot) -> str:
    job = snapshot.job
    channels = len(snapshot.views[ROOT_KIND.prefix].totals)
    return (
        f"{number(job.records)} records read, "
        f"{number(job.records_behind)} to read, "
        f"event-time lag {words.seconds(job.event_time_lag_seconds)}, "
        f"{counted(channels, 'channel')} since the first record"
    )


def _name(snapshot: Snapshot, channel: str) -> Text:
    text = Text(called(snapshot, channel, ROOT_KIND))
    if snapshot.table.of(channel).name:
        # The id follows the name, because a pattern of the channel table can give the
        # same name to several channels.
        text.append(f" {words.short(channel)}", "dim")
    return text


def _verdict(snapshot: Snapshot, totals: ViewTotals, muted: bool) -> Text:
    text = Text()
    if muted:
        text.append("muted: ", "dim")
    text.append(words.VERDICTS[totals.verdict], _VERDICTS[totals.verdict])
    if totals.verdict is not Verdict.OK:
        text.append(f" {reason_of(snapshot, totals, ROOT_KIND)}")
    return text


def _cell(figure: _Figure, totals: Any) -> Text:
    text = figure.text(totals)
    return Text(text, "bold red" if figure.grave and text != "0" else "")


@contextmanager
def logged_progress(
    line: Callable[[Snapshot], str], monotonic_s: Callable[[], float] = time.monotonic
) -> Iterator[Display]:
    """Log a job's progress every 10 s, and its last state when the block ends.

    A log in JSON also has figures of the progress.
    """
    logged_s = float("-inf")
    pending: Snapshot | None = None

    def display(snapshot: Snapshot) -> None:
        nonlocal logged_s, pending
        pending = snapshot
        if monotonic_s() - logged_s >= _LOG_EVERY_S:
            logged_s, pending = monotonic_s(), None
            _log(line(snapshot), snapshot)

    try:
        yield display
    finally:
        if pending is not None:
            _log(line(pending), pending)


def _log(message: str, snapshot: Snapshot) -> None:
    channels = snapshot.views[ROOT_KIND.prefix].totals
    verdicts = Counter(totals.verdict for totals in channels.values())
    figures = {
        "records": snapshot.job.records,
        "records_behind": snapshot.job.records_behind,
        "lag_seconds": snapshot.job.event_time_lag_seconds,
        "channels": {verdict.value: verdicts[verdict] for verdict in Verdict},
    }
    logger.info("%s", message, extra={FIGURES: figures})
