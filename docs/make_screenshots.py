"""Takes the pictures of the status page that the documentation shows.

``python -m docs.make_screenshots`` runs a demo with lost messages for them; with
``--url`` it uses a running monitor. The first page is that of a simulated network that
splits, and the page of forecasts that of simulated months, since a demo has no weeks of
history; with ``--simulated`` only these two are opened.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import httpx
from playwright.sync_api import Browser, sync_playwright
from prometheus_client import CollectorRegistry

from connectors.simulator.records import simulation_of
from connectors.simulator.scenario_files import load_scenario
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures
from sds_core.observer.verdict import Verdict
from sds_core.planning.hours import DAY_MS
from streaming.plan_worker import Order, compute
from tests.support.monitor import Monitor, batches
from tests.support.planning.month import MONDAY_MS, Month
from tests.support.planning.stored import store
from tests.support.snapshots import snapshot_of
from tests.support.web.stored import stored

_IMAGES = Path(__file__).parent / "images"
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_DESKTOP = {"width": 1280, "height": 720}
_PHONE = {"width": 390, "height": 844}
_LARGEST_BYTES = 200_000
_RATES = {"town": 2_800.0, "village": 1_300.0, "harbour": 600.0}
"""Messages a day of the channels with forecasts."""


def main() -> None:
    """Open each page and save a picture of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="of a status page; a demo's unless given")
    parser.add_argument("--channel", help="id; the most troubled unless given")
    parser.add_argument("--runbook", help="alert; the first unless given")
    parser.add_argument("--simulated", action="store_true", help="no demo")
    parser.add_argument("--out", type=Path, default=_IMAGES)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with _splits() as url, _browser() as browser:
        _take(browser, url, options.out / "fleet.png", whole=True)
    with _planning() as url, _browser() as browser:
        _take(browser, url, options.out / "planning.png")
    if options.simulated:
        return
    with nullcontext(options.url) if options.url else _demo() as url:
        _take_all(url.rstrip("/"), options)


@contextmanager
def _demo() -> Iterator[str]:
    """Run a demo to its end; gives the URL of its page."""
    command = ["sds-monitor", "demo", "--scenario", "unrepaired", "--keep"]
    program = Path(sys.executable).with_name(command[0])
    demo = subprocess.Popen(  # noqa: S603 - our own
        [program, *command[1:], "--metrics-port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert demo.stdout is not None  # noqa: S101 - a pipe
        for line in demo.stdout:
            if found := re.match("the page is served until Ctrl-C: (.+)", line):
                yield found[1]
                return
        message = f"{' '.join(command)} has ended: run it to see why"
        raise SystemExit(message)
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait()


@contextmanager
def _planning() -> Iterator[str]:
    """Serve the forecasts of simulated months; gives the URL of the page."""
    months = {
        name: Month(seed=seed, days=31, messages_a_day=rate)
        for seed, (name, rate) in enumerate(_RATES.items(), start=1)
    }
    end_ms = MONDAY_MS + 31 * DAY_MS
    with TemporaryDirectory() as directory:
        rows = {name: one.rows(step=10) for name, one in months.items()}
        store(Path(directory), rows)
        order = Order(directory, "sds", [*months], 0, end_ms, 100, seconds=600.0)
        plans = {"sds": compute(order)}
    totals = dict.fromkeys(months, ChannelTotals(verdict=Verdict.OK))
    job = JobFigures(running=True, event_time_lag_seconds=1.0)
    snapshot = snapshot_of(totals, primed=True, clock_ms=end_ms, job=job)
    sources = Sources(lambda: snapshot, stored(), Path(), plans=lambda: plans)
    with WebServer(create_app(sources, CollectorRegistry()), port=0) as server:
        yield f"{server.url}/planning"


@contextmanager
def _splits() -> Iterator[str]:
    """Serve what the monitor finds in a network that splits; gives the page's URL."""
    scenario = load_scenario(str(_IMAGES / "split.toml"))
    monitor = Monitor()
    for batch in batches(list(simulation_of(scenario, 1, MONDAY_MS, 4).records)):
        monitor.read(*batch)
    job = JobFigures(running=True, event_time_lag_seconds=0.0)
    snapshot = replace(monitor.snapshot, primed=True, job=job)
    sources = Sources(lambda: snapshot, stored(), Path())
    with WebServer(create_app(sources, CollectorRegistry()), port=0) as server:
        yield f"{server.url}/?window=all"


@contextmanager
def _browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=_ARGUMENTS
        )
        yield browser
        browser.close()


def _take_all(url: str, options: argparse.Namespace) -> None:
    channel = f"channel?id={quote(options.channel or _most_troubled(url), safe='')}"
    with _browser() as browser:
        runbook = options.runbook or _first_runbook(browser, url)
        for name, path in {
            "channel": channel,
            "incidents": "incidents",
            "taps": "taps",
            "monitor": "monitor",
            "runbook": f"runbooks/{runbook}",
        }.items():
            _take(browser, f"{url}/{path}", options.out / f"{name}.png")
        _take(browser, f"{url}/{channel}", options.out / "phone.png", phone=True)
        _take(browser, f"{url}/{channel}#charts", options.out / "dark.png", dark=True)


def _most_troubled(url: str) -> str:
    fleet = httpx.get(f"{url}/api/v1/channels", params={"limit": 1}).json()
    if not fleet["channels"]:
        message = f"the monitor at {url} has seen no channel: wait for its first batch"
        raise SystemExit(message)
    return str(fleet["channels"][0]["id"])


def _first_runbook(browser: Browser, url: str) -> str:
    page = browser.new_page()
    page.goto(f"{url}/runbooks")
    first = page.locator(".runbooks a")
    if not first.count():
        message = f"the monitor at {url} has no runbooks"
        raise SystemExit(message)
    name = first.first.inner_text()
    page.close()
    return name


def _take(
    browser: Browser,
    url: str,
    path: Path,
    *,
    phone: bool = False,
    dark: bool = False,
    whole: bool = False,
) -> None:
    page = browser.new_page(
        viewport=_PHONE if phone else _DESKTOP,
        color_scheme="dark" if dark else "light",
    )
    page.goto(url)
    page.screenshot(path=path, full_page=whole)
    page.close()
    if path.stat().st_size > _LARGEST_BYTES:
        message = f"{path} is larger than {_LARGEST_BYTES:,} bytes: show less"
        raise SystemExit(message)


if __name__ == "__main__":
    main()
