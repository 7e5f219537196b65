"""Which tests a parallel run keeps together, and in which order they begin.

The tests of a group run one after the other in one worker of pytest-xdist. Each worker
starts a broker and a Spark session at most once, when its first test asks for one: all
tests of a broker or session are one group, so that few workers need any.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

SESSION = "spark"
BROKER = "kafka"
LONG = ("tests/soak/", "tests/e2e/")
"""Their tests last for minutes of real time, most of which they wait."""


def group_of(item: pytest.Item) -> str:
    """Name of the group of a test.

    The slow suites are groups of their own, then come the tests of a shared session
    and of a shared broker. All others are grouped by module, for its fixtures.
    """
    path = item.nodeid.partition("::")[0]
    for directory in LONG:
        if path.startswith(directory):
            return directory
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures:
        return SESSION
    if "kafka_broker" in fixtures:
        return BROKER if path.startswith("tests/connectors/") else f"{BROKER} commands"
    return path


def rank_of(group: str) -> int:
    """Place of a group: long ones begin first, so that no worker ends late."""
    if group in LONG:
        return LONG.index(group)
    return len(LONG) + (group != SESSION) + (not group.startswith((SESSION, BROKER)))


def arrange(items: list[pytest.Item]) -> None:
    """Mark tests with their groups, and order them, in place."""
    groups = {item: group_of(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: rank_of(groups[item]))


def names(items: Iterable[pytest.Item]) -> list[str]:
    """The groups of some tests, in order."""
    return list(dict.fromkeys(group_of(item) for item in items))
