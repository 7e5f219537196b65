"""Which tests a parallel run keeps together, and in which order they begin.

The tests of a group run one after the other in one worker of pytest-xdist. Each worker
starts a broker and a Spark session at most once, when its first test asks for one. The
tests of the shared session are one group, those of the shared broker two: so few
workers need either.
"""

from __future__ import annotations

import pytest

SOAK = "soak"
"""Minutes of real time, most of which it waits: it begins first."""

SESSION = "session"
COMMANDS = "commands"
"""Commands in processes of their own, with a JVM each, on the shared broker."""
BROKER = "broker"

_ORDER = (SOAK, SESSION, COMMANDS, BROKER)


def group_of(path: str, fixtures: frozenset[str]) -> str:
    """Return the name of the group of a test.

    Args:
        path: Of its module, from the root of the repository.
        fixtures: Names of all fixtures that it uses.
    """
    if path.startswith("tests/soak/"):
        return SOAK
    if "spark" in fixtures:
        return SESSION
    if "kafka_broker" in fixtures:
        return COMMANDS if path.startswith("tests/streaming/") else BROKER
    # The fixtures of a module are made once.
    return path


def arrange(items: list[pytest.Item]) -> None:
    """Mark tests with their groups and sort them in place.

    Large groups come first, so that no worker ends late.
    """
    places = {}
    for item in items:
        path = item.nodeid.partition("::")[0]
        fixtures = frozenset(getattr(item, "fixturenames", ()))
        group = group_of(path, fixtures)
        item.add_marker(pytest.mark.xdist_group(group))
        places[item] = _ORDER.index(group) if group in _ORDER else len(_ORDER)
    items.sort(key=places.__getitem__)
