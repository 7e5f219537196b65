"""Groups of tests for parallel runs."""

from __future__ import annotations

import pytest

from tests.support.groups import BROKER, COMMANDS, SESSION, SOAK, arrange, group_of


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("tests/soak/test_mirror.py", SOAK),
        ("tests/streaming/test_job.py", SESSION),
        ("tests/streaming/test_crash.py", None),
        ("tests/streaming/test_simulate_command.py", COMMANDS),
        ("tests/streaming/cli/test_export_command.py", COMMANDS),
        ("tests/connectors/kafka/test_offsets.py", BROKER),
        ("tests/sds_core/wire/test_codec.py", None),
    ],
)
def test_tests_of_one_program_are_one_group(path: str, group: str | None) -> None:
    """All others are grouped by module."""
    assert group_of(path) == (group or path)


def test_order_within_a_group_is_kept(request: pytest.FixtureRequest) -> None:
    """Tests of a module may rely on it for speed."""
    items = [item for item in request.session.items if item.path == request.path]
    before = items.copy()
    arrange(items)
    assert items == before
