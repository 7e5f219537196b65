"""The live table of a terminal, as text; and log lines where there is none."""

from __future__ import annotations

import io
import logging
from dataclasses import replace

import pytest
from rich.console import Console

from connectors.web.words import NOTHING, short
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.freshness import Freshness
from sds_core.observer.histogram import Histogram
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.verdict import Verdict
from streaming.cli.live import live_view, progress_display
from streaming.cli.log import LogFormat
from tests.support.cli.terminal import Terminal, log_on
from tests.support.snapshots import snapshot_of, with_channels

URL = "http://127.0.0.1:9108"


def latency() -> Histogram:
    """Four acknowledgements, one of them late."""
    histogram = Histogram()
    for milliseconds in (300, 700, 3_000, 90_000):
        histogram.observe(milliseconds)
    return histogram


def make_snapshot(quiet: int = 0) -> Snapshot:
    """A channel that fails and is named, a fine one, and so many quiet ones."""
    channels = {
        "fine": ChannelTotals(verdict=Verdict.OK, verdict_reason="ok"),
        "support-1": ChannelTotals(
            verdict=Verdict.FAILING,
            verdict_reason="lost",
            definite_latency=latency(),
            unacknowledged=1_234,
            gaps_open=5,
            gaps_lost=2,
            repair_answered=9,
            repair_expired=1,
        ),
    } | {
        f"quiet-{number:03}": ChannelTotals(
            verdict=Verdict.QUIET, verdict_reason="quiet"
        )
        for number in range(quiet)
    }
    table = ChannelTable([ChannelEntry("support-*", name="Support rooms")])
    job = JobFigures(running=True, records=98_765, event_time_lag_seconds=1.25)
    return snapshot_of(primed=True, channels=channels, job=job, table=table)


def rendered(snapshot: Snapshot, width: int = 130, height: int = 24) -> list[str]:
    """The lines that a terminal of this size shows."""
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(live_view(snapshot, URL, width, height))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_table_begins_with_verdict_and_worst_channel() -> None:
    """With the page's words, and the page's address at the end."""
    sentence, job, _, heading, first, *others, last = rendered(make_snapshot(quiet=1))
    assert sentence == "1 of 3 channels failing: Support rooms"
    assert job == (
        "98,765 records read, 0 to read, event-time lag 1.2 s, "
        "3 channels since the first record"
    )
    assert heading.split() == [
        *("channel", "verdict", "p50", "p95", "unack'd", "missing", "undeliv'd"),
        *("lost", "repaired"),
    ]
    assert first.startswith("Support rooms support-1 ")
    for words in (
        "Failing messages were lost",
        "≤ 1 s",
        "≤ 2 min",
        "1,234",
        "90 %",
    ):
        assert words in first
    assert [line.split()[0] for line in others if line] == ["quiet-000", "fine"]
    assert last == f"{URL}/"


@pytest.mark.parametrize(("width", "height"), [(110, 24), (60, 10), (30, 5)])
def test_table_fits_any_terminal(width: int, height: int) -> None:
    """At least one channel is in it; the others are counted."""
    lines = rendered(make_snapshot(quiet=500), width, height)
    assert len(lines) <= max(height, 8) - 1
    assert max(map(len, lines)) <= width
    more = 502 - max(1, height - 7)
    assert lines[-1].startswith(f"{more} more channels")


def test_table_has_what_was_not_delivered_without_what_came_later() -> None:
    """As the page: in red if anything is left."""
    figures = ChannelTotals(
        verdict=Verdict.FAILING,
        verdict_reason="undelivered",
        deliveries_lost=7_007,
        deliveries_retracted=2,
        gaps_lost=3,
        gaps_retracted=3,
    )
    shown = with_channels(make_snapshot(), totals={"c": figures})
    *_, heading, row, _, _ = rendered(shown)
    assert heading.split()[-3:] == ["undeliv'd", "lost", "repaired"]
    assert row.split()[-3:] == ["7,005", "0", NOTHING]
    assert "undeliv'd" in rendered(shown, width=60)[3]


def test_muted_channel_is_marked_and_comes_last() -> None:
    """The operator does not want to see its troubles."""
    muted = ChannelTable([ChannelEntry("support-*", mute_until_ms=2)])
    lines = rendered(make_snapshot().with_table(muted, wall_ms=1))
    assert lines[0] == "Everything is fine; 1 muted"
    assert lines[5].startswith("support-1 ")
    assert " muted: Failing messages" in lines[5]


def test_untrusted_text_is_no_markup() -> None:
    """It stays in its line."""
    evil = "[bold]x[/] :boom:\x1b[2J\n"
    snapshot = snapshot_of(primed=True, channels={evil: ChannelTotals()})
    assert any(line.startswith(short(evil)) for line in rendered(snapshot))


def test_table_says_that_the_job_has_not_started() -> None:
    """There are no channels yet."""
    lines = rendered(snapshot_of())
    assert lines[0] == "Starting Spark, about 10 s"
    assert lines[3] == "no channel has been seen yet"


@pytest.fixture
def terminal() -> Terminal:
    """Where standard output and standard error go."""
    return Terminal()


def console_on(terminal: Terminal, **environment: str) -> Console:
    """A console as `Console()` makes it on this terminal."""
    return Console(
        file=terminal, width=100, height=20, _environ={"TERM": "xterm"} | environment
    )


def test_log_lines_appear_above_the_table(terminal: Terminal) -> None:
    """The table is then drawn again."""
    console = console_on(terminal, NO_COLOR="1")
    with log_on(terminal), progress_display(console, LogFormat.TEXT, URL, str) as show:
        show(make_snapshot())
        before = terminal.tell()
        logging.getLogger("sds-monitor").warning("the history waits")
        drawn = terminal.getvalue()[before:]
    assert 0 < drawn.index("the history waits\n") < drawn.index("1 of 2 channels")
    assert "\x1b[31m" not in terminal.getvalue()


@pytest.mark.parametrize(
    ("log_format", "environment"),
    [(LogFormat.JSON, {}), (LogFormat.TEXT, {"TERM": "dumb"})],
)
def test_without_an_interactive_terminal_there_are_log_lines(
    terminal: Terminal, log_format: LogFormat, environment: dict[str, str]
) -> None:
    """Also for a JSON log, and a terminal that cannot move its cursor."""
    console = console_on(terminal, **environment)
    line = "{0.job.records:,}".format
    with log_on(terminal), progress_display(console, log_format, URL, line) as show:
        show(make_snapshot())
    assert terminal.getvalue().endswith(" 98,765\n")
    assert "\x1b" not in terminal.getvalue()


def test_silence_of_kafka_is_the_first_line_of_the_terminal() -> None:
    """With the time since when."""
    snapshot = make_snapshot()
    kafka = Freshness(1_786_276_990_123, answered_s=5.0)
    silent = replace(snapshot, job=replace(snapshot.job, kafka=kafka)).as_of(30.0)
    first = rendered(silent)[0].rstrip()
    assert first == "Kafka has not answered since 2026-08-09 12:03:10 UTC"
