"""Which tests a parallel run keeps together, and in which order they begin.

The tests of a group run one after the other in one worker of pytest-xdist. Each worker
starts a broker and a Spark session at most once, when its first test asks for one. The
modules of the shared session are two groups, those of the shared broker as well: so few
workers need either, and none of them ends late.

pytest-xdist 3.8 loses the groups of its own marker under pytest 9.2, therefore the
scheduler here asks `group_of`.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

SOAK = "soak"
"""Minutes of real time, most of which it waits: it begins first."""

SESSION = "session"
FAULTS = "faults"
"""Jobs that fail, on a shared session too."""
COMMANDS = "commands"
"""Commands in processes of their own, with a JVM each, on the shared broker."""
BROKER = "broker"
INTEROP = "interop"
"""Its first test may install `@waku/sds`; two installations at once would collide."""

_ROOT = Path(__file__).parents[2]
_ORDER = (
    SOAK,
    SESSION,
    FAULTS,
    "tests/chaos/test_chaos.py",
    "tests/streaming/test_run_command.py",
    "tests/streaming/test_crash.py",
    "tests/streaming/cli/test_demo_command.py",
    "tests/streaming/test_cluster.py",
    "tests/streaming/test_kafka_away.py",
    "tests/streaming/audit/test_audit.py",
    COMMANDS,
    BROKER,
    "tests/fuzz/test_decoders.py",
    "tests/accuracy/test_accuracy.py",
    "tests/sds_core/observer/sds/test_channel_view.py",
    "tests/connectors/broker/test_broker.py",
    INTEROP,
    "tests/dashboards/test_alerts.py",
    "tests/connectors/web/test_browser.py",
    "tests/connectors/web/test_browser_live.py",
    "tests/connectors/web/test_browser_layout.py",
)
"""The longest first, so that no worker ends late."""

# Parameters of tests and fixtures, with their types.
_USES_SESSION = re.compile(r"\b(spark|drain|live|observe): ")
_FAULTS = re.compile(r"/test_(damage|fail|forget|full|interrupted|topic|watchdog)")
_USES_BROKER = re.compile(r"\b(kafka_broker|kafka_topic|topic|module_topic): ")


@functools.cache
def group_of(path: str) -> str:
    """Return the name of the group of all tests of a module.

    Args:
        path: Of the module, from the root of the repository.
    """
    if path.startswith("tests/soak/"):
        return SOAK
    if path.startswith("tests/interop/"):
        return INTEROP
    if path.startswith("tests/e2e/"):
        # A minute each, most of which they wait.
        return path
    source = (_ROOT / path).read_text("utf-8")
    if _USES_SESSION.search(source):
        return FAULTS if _FAULTS.search(path) else SESSION
    if _USES_BROKER.search(source) and "pytest.mark.kafka" in source:
        if path.startswith("tests/streaming/"):
            # Minutes each: together they would end last.
            return path if path in _ORDER else COMMANDS
        return BROKER
    # The fixtures of a module are made once.
    return path


def _module_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def arrange(items: list[pytest.Item]) -> None:
    """Sort tests in place: large groups first, so that no worker ends late."""

    def place(item: pytest.Item) -> int:
        group = group_of(_module_of(item.nodeid))
        return _ORDER.index(group) if group in _ORDER else len(_ORDER)

    items.sort(key=place)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each worker one group after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(_module_of(nodeid))
