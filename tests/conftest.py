"""Fixtures shared by all rooms; programs that are missing; groups for parallel runs."""

from __future__ import annotations

import functools
import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import groups, programs
from tests.support.kafka import kafka_broker, kafka_topic
from tests.support.streaming.session import spark

__all__ = ["kafka_broker", "kafka_topic", "spark"]

MISSING = pytest.StashKey[list[str]]()

ALONE = Path(__file__).with_name("e2e")
"""Where `make test-alone` collects."""
MARKS = {"kafka", "spark", "browser", "node", "needs", "slow"}
"""`make test-rest` collects the modules whose source has one of them."""

# A busy machine is slow, not wrong.
settings.register_profile(
    "timeless", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("timeless")


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """A command under test starts the log of its process, which later tests share."""
    root, ours = logging.getLogger(), logging.getLogger("sds-monitor")
    handlers, level = root.handlers[:], ours.level
    yield
    root.handlers[:] = handlers
    ours.setLevel(level)


def pytest_configure(config: pytest.Config) -> None:
    """Look for the programs that tests need."""
    # A shell starts programs in the background with SIGINT ignored, and what they start
    # inherits it: commands under test could not be interrupted.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[MISSING] = programs.find_missing()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name the missing programs at the start."""
    missing = [
        name for name in config.stash[MISSING] if name not in programs.FOR_LONG_TESTS
    ]
    return [programs.missing_line(missing)] if missing else []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Skip what cannot run, and arrange the rest for the workers."""
    programs.skip_without(items, config.stash[MISSING])
    groups.arrange(items)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if "alone" in marks and ALONE not in item.path.parents:
            message = f"{item.nodeid} is alone, and not in {ALONE}, where make collects"
            raise pytest.UsageError(message)
        for mark in marks & MARKS:
            if f"mark.{mark}" not in _source(item.path):
                message = f"{item.nodeid} has the mark {mark}, which its module lacks"
                raise pytest.UsageError(message)


@functools.cache
def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep groups together."""
    return groups.GroupScheduling(config, log)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the missing programs at the end, with how many tests were skipped."""
    missing = config.stash[MISSING]
    reports = terminalreporter.stats.get("skipped", ())
    skipped = programs.count_skipped(report.longrepr[2] for report in reports)
    if missing and skipped:
        terminalreporter.write_line(programs.missing_line(missing, skipped))
