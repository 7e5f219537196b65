"""Groups of tests for parallel runs."""

from __future__ import annotations

import pytest

from tests.support.groups import BROKER, COMMANDS, SESSION, SOAK, arrange, group_of


@pytest.mark.parametrize(
    ("path", "fixtures", "group"),
    [
        ("tests/soak/test_mirror.py", {"tmp_path"}, SOAK),
        ("tests/streaming/test_job.py", {"spark", "kafka_broker"}, SESSION),
        ("tests/streaming/test_crash.py", {"kafka_broker", "topic"}, COMMANDS),
        ("tests/streaming/cli/test_export_command.py", {"kafka_broker"}, COMMANDS),
        ("tests/connectors/kafka/test_offsets.py", {"kafka_broker"}, BROKER),
        ("tests/sds_core/wire/test_codec.py", {"tmp_path"}, None),
    ],
)
def test_tests_of_one_program_are_one_group(
    path: str, fixtures: set[str], group: str | None
) -> None:
    """All others are grouped by module."""
    assert group_of(path, frozenset(fixtures)) == (group or path)


def test_large_groups_begin_first(request: pytest.FixtureRequest) -> None:
    """Otherwise the order is kept; each test has one group."""
    items = [item for item in request.session.items if item.path == request.path]
    before = items.copy()
    arrange(items)
    assert items == before
    groups = {mark.args for item in items for mark in item.iter_markers("xdist_group")}
    assert groups == {("tests/test_groups.py",)}
