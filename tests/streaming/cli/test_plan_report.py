"""``--html`` of plans and traces: a file that opens offline, at both widths."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from axe_playwright_python.sync_playwright import Axe
from click.testing import CliRunner, Result
from playwright.sync_api import Page, expect

from connectors.web.blocks import HeatMap, Range, Ranges, Report, Section
from connectors.web.report import report_html
from connectors.web.trace_blocks import trace_report
from sds_core.observer.figure_table import Names
from sds_core.planning.hours import DAY_MS
from streaming.cli import group
from streaming.cli.actions import plan_forecast
from streaming.cli.actions.plan_report import forecast_report
from streaming.cli.output import check_page, write_json
from tests.support.planning.made_plan import plan
from tests.support.planning.month import Month
from tests.support.planning.stored import store
from tests.support.trace.hostile import hostile_trace
from tests.support.web.browser import browser, complaints, page
from tests.support.web.busy import HOSTILE

__all__ = ["browser", "complaints", "page"]

NAMES = Names("channel", "channel", "channels")
MONTH = Month(days=30, messages_a_day=2_800.0)
ESCAPED = f"{HOSTILE}'\n\u202e</style>"


def invoke(*arguments: str) -> Result:
    """A command of `plan` in this process."""
    return CliRunner().invoke(group, ["plan", *arguments])


SIZE = ("size", "--channel-count", "10000", "--messages-per-second", "1000")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each kind."""
    directory = tmp_path_factory.mktemp("reports")
    made = plan(["town", ESCAPED], ["new"])
    text = forecast_report(made, NAMES, {"town": "Town hall"}.get)  # type: ignore[arg-type]
    (directory / "forecast.html").write_text(text)
    assert invoke(*SIZE, "--html", str(directory / "size.html")).exit_code == 0
    variants = [
        Range(name, low, mid, high, f"{mid} s")
        for name, low, mid, high in (("today", 2, 3, 5), (ESCAPED, 1, 1, 1))
    ]
    cells = {
        ("0 %", "2"): (1.0, "100 %"),
        ("0 %", "1,000"): (0.99, "99 %"),
        ("40 %", "2"): (0.5, "50 %"),
    }
    blocks = [
        Ranges("Time to recover, p95", variants),
        HeatMap.of("Delivered", "Loss, by participants", cells),
    ]
    report = Report("A sweep", ["So it is."], [Section("All", blocks, small=True)], "")
    (directory / "sweep.html").write_text(report_html(report))
    (directory / "trace.html").write_text(report_html(trace_report([hostile_trace()])))
    return directory


@pytest.fixture
def served(reports: Path) -> str:
    """Where the pages are: a tab reaches nothing else."""
    return reports.as_uri()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["forecast", "size", "sweep", "trace"])
def test_page_opens_offline(
    page: Page, served: str, complaints: list[str], name: str
) -> None:
    """No error, no foreign request, nothing that axe calls serious, no overflow."""
    page.context.set_offline(True)
    # Nothing but colours differs between the schemes.
    contrast = {"runOnly": ["color-contrast"]}
    for width, scheme, rules in ((360, "dark", contrast), (1280, "light", {})):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(f"{served}/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for details in page.locator("details").all()[:1]:
            details.evaluate("one => { one.open = true }")
        violations = Axe().run(page, options=rules).response["violations"]
        grave = [v for v in violations if v["impact"] in ("serious", "critical")]
        assert [(v["id"], v["nodes"][0]["html"]) for v in grave] == []
    page.emulate_media(media="print")
    assert page.locator("details:visible").count() == 0
    assert page.locator("figure:visible").count() > 1
    assert complaints == []


@pytest.mark.browser
def test_forecast_is_drawn(page: Page, served: str) -> None:
    """Each chart has a name, a band and a table; names from outside are text."""
    page.goto(f"{served}/forecast.html")
    charts = page.get_by_role("img")
    # Three of the sum, a small one of each channel, and six of each channel.
    assert charts.count() == 3 + 2 + 2 * 6
    # Those of parts have bars.
    assert page.locator(".band").count() == charts.count() - 3
    assert page.locator(".forecast").count() > 0
    expect(page.get_by_role("heading", name="Town hall (town)")).to_be_visible()
    assert page.locator("img").count() == 0
    assert page.locator("figure table").count() > charts.count()
    budget = page.get_by_role("img", name="Filter").first.locator("xpath=..")
    expect(budget).to_contain_text("Limit")
    page.get_by_text("Bytes a day as a table").first.click()
    row = page.get_by_role("row", name="09 Sep").first
    expect(row).to_contain_text(re.compile(r"171 MB \(171 MB to 180 MB\)"))


def test_command_writes_the_page_of_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside its table; a directory that is missing is made."""
    end_ms = MONTH.begin_ms + 30 * DAY_MS
    monkeypatch.setattr(plan_forecast, "wall_ms", lambda: end_ms)
    store(tmp_path / "history", {"town": MONTH.rows()})
    file = tmp_path / "new" / "page.html"
    result = invoke(
        "forecast", "--history", str(tmp_path / "history"), "--html", str(file)
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Channel town: 29 days")
    text = file.read_text()
    assert "<title>Forecast of channel town · sds-monitor</title>" in text
    assert "First limit: filter of town. Earliest time: 2026-09-" in text
    assert "<script" not in text
    assert [one.name for one in file.parent.iterdir()] == ["page.html"]


def test_failed_command_leaves_no_page(tmp_path: Path) -> None:
    """Neither of an empty history, nor where nothing can be written."""
    (tmp_path / "lock").touch()
    file = tmp_path / "page.html"
    result = invoke("forecast", "--history", str(tmp_path), "--html", str(file))
    assert (result.exit_code, file.exists()) == (2, False)
    result = invoke(*SIZE, "--html", str(tmp_path / "lock" / "page.html"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--html: " in result.stderr.splitlines()[-1]


def test_one_channel_needs_no_sum() -> None:
    """Its page begins with it."""
    text = forecast_report(plan(["town"]), NAMES, lambda view: "")
    assert "together" not in text
    assert "until 2026-09-09 00:00:00 UTC" in text


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A pipe with a name, and the descriptor at its other end."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, reader
    os.close(reader)


def test_page_goes_to_a_pipe(pipe: tuple[Path, int]) -> None:
    """Which no file replaces."""
    path, reader = pipe
    result = invoke(*SIZE, "--html", str(path))
    assert result.exit_code == 0, result.output
    assert os.read(reader, 100_000).startswith(b"<!doctype html>")
    assert list(path.parent.iterdir()) == [path]
    assert path.is_fifo()


def test_page_goes_to_a_pipe_where_no_file_can_be_made(
    pipe: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `/dev` for most users; but it must be writable itself."""
    path, _ = pipe
    monkeypatch.setattr(os, "access", lambda place, mode: place == path)
    check_page(path)
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    with pytest.raises(click.UsageError, match="has no write permission"):
        check_page(path)


@pytest.mark.parametrize("path", ["page.html", "new/page.html"])
def test_page_in_a_directory_that_cannot_be_searched_is_wrong_use(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a directory of another user: one line, and no traceback."""
    closed, found = tmp_path / "closed", os.stat
    closed.mkdir()

    def stat(place: Path, **options: bool) -> os.stat_result:
        if closed in Path(place).parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
        return found(place, **options)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(
        os, "access", lambda place, mode: place == closed and mode == os.F_OK
    )
    with pytest.raises(click.UsageError, match="closed is not a writable directory"):
        check_page(closed / path)


def test_report_on_standard_output_is_alone_there(
    pipe: tuple[Path, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The line that names the file is on standard error."""
    path, reader = pipe
    write_json({"a": 1}, path, "report")
    assert os.read(reader, 100) == b'{\n  "a": 1\n}\n'
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"report in {path}\n")
