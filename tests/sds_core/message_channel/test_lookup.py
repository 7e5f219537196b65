"""How a participant finds a message by its id."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sds_core.message_channel.local_log import LocalLog
from sds_core.message_channel.profile import LogOrder
from sds_core.message_channel.retained import RetainedMessages
from sds_core.wire import HistoryEntry
from tests.support.frames import START_MS
from tests.support.participants import SPEC


class CountedId(str):
    """An id that counts how often it was compared with another one."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        """Count, and compare."""
        CountedId.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def comparisons(find: Callable[[str], object], message_id: str) -> int:
    """How many ids are compared to find one."""
    CountedId.comparisons = 0
    find(CountedId(message_id))
    return CountedId.comparisons


@pytest.mark.rule("sds-r-performance-2")
@pytest.mark.parametrize("order", list(LogOrder))
def test_log_finds_an_id_in_constant_time(order: LogOrder) -> None:
    """In a log of any length, and among the ids that it dropped last."""
    for count in (10, 5_000):
        log = LocalLog(order, 4_000)
        for number in range(count):
            log.add(number, HistoryEntry(f"m{number}", b"", "alice"))
        for wanted in ("m0", f"m{count - 1}", "unknown"):
            assert comparisons(log.knows, wanted) <= 2
        assert log.knows("m0")


@pytest.mark.rule("sds-r-performance-2")
def test_stored_message_is_found_in_constant_time() -> None:
    """Among as many as are stored."""
    kept = RetainedMessages(SPEC)
    for number in range(SPEC.repair_retained_limit):
        kept.add(f"m{number}", b"frame", "alice", START_MS)

    def find(message_id: str) -> object:
        found = kept.get(message_id, START_MS)
        assert found is not None
        return found

    for wanted in ("m0", f"m{SPEC.repair_retained_limit - 1}"):
        assert comparisons(find, wanted) <= 2
