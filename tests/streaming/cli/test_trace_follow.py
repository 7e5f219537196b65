"""When ``sds-monitor trace --follow`` continues its traces."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pytest

from connectors.kafka.offsets import TimedOffset, TopicOffsets
from sds_core.observer.protocols import PROTOCOLS, by_name
from sds_core.observer.record import RawRecord
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tracing import Query, Subject
from sds_core.wire import encode
from streaming.cli.actions import trace as trace_action
from streaming.cli.actions.trace import _Reading
from streaming.cli.actions.trace_search import Search
from streaming.cli.trace_options import TraceRequest
from streaming.cli.window_options import ALL_TIMES
from tests.support.frames import MINUTE, START_MS, Entry, FrameFactory
from tests.support.kafka import NOBODY

FRAMES = FrameFactory("town")


class Quiet:
    """Offsets of a topic: partition 0 is complete, and partition 1 continues."""

    def __init__(self, records: int, newest_ms: int) -> None:
        self.newest_ms = newest_ms
        self._records = records

    def partitions(self) -> list[int]:
        """Both."""
        return [0, 1]

    def latest(self, partitions: Sequence[int]) -> dict[int, int]:
        """The ends."""
        return dict.fromkeys(partitions, self._records)

    def newest(self, partitions: Sequence[int]) -> dict[int, TimedOffset]:
        """The newest record, of either partition."""
        return {1: TimedOffset(self._records - 1, self.newest_ms)}

    def first_at_or_after(
        self, partitions: Sequence[int], time_ms: int
    ) -> dict[int, TimedOffset]:
        """The first record."""
        return dict.fromkeys(partitions, TimedOffset(0, START_MS))


class Ending:
    """Ends after three polls; before the second one, partition 1 gets a record."""

    def __init__(self, offsets: Quiet) -> None:
        self._offsets = offsets
        self._polls = 0

    def is_set(self) -> bool:
        """Never while records are read."""
        return False

    def wait(self, timeout: float) -> bool:
        """Return at once."""
        self._polls += 1
        if self._polls == 2:
            self._offsets.newest_ms += 20 * MINUTE
        return self._polls > 3


def test_deadlines_pass_while_the_partition_of_the_message_is_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records of other partitions show how late it is; a quiet topic yields nothing."""
    records = []
    for offset in range(20):
        history: list[Entry] = [f"m{offset - 1}"] if offset else []
        history += [("lost", "bob")] if offset == 19 else []
        frame = FRAMES.content(f"m{offset}", "alice", 1_000 + offset, history=history)
        at_ms = START_MS + offset * MINUTE
        records.append(RawRecord(0, offset, at_ms, b"town", encode(frame), ()))
    offsets = Quiet(len(records), START_MS + 19 * MINUTE)

    def read(
        settings: object, offsets: object, starts: Mapping[int, int], ends: object
    ) -> Iterator[RawRecord]:
        yield from records[starts[0] :]

    monkeypatch.setattr(trace_action, "read_in_order_of_time", read)
    monkeypatch.setattr(trace_action, "wall_ms", lambda: START_MS + 60 * MINUTE)
    reading = _Reading(NOBODY, cast(TopicOffsets, offsets), _searched(), follow=True)
    yielded = reading.traces(cast(threading.Event, Ending(offsets)))
    assert [bool(one.evidence.conclusions) for (one,) in yielded] == [False, True]


def _searched() -> Search:
    subject, protocol = Subject("town", "lost"), by_name(PROTOCOLS)["sds"]
    request = TraceRequest("lost", None, False, "town", ALL_TIMES)
    arguments: dict[str, Any] = {
        "subjects": {subject: START_MS + 19 * MINUTE},
        "protocol": protocol,
        "partitions": {0},
    }
    query = Query(frozenset(["lost"]))
    return Search(request, DEFAULTS, query, ALL_TIMES, {"sds": protocol}, **arguments)
