"""What one record can make the views do, counted: no timings.

Time follows from these numbers: entries of the state that a record adds, and ids that
its filter is searched for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sds_core.observer import blob
from sds_core.observer.columns import unpack_ints
from sds_core.observer.dead_letter_view import DEAD_LETTERS
from sds_core.observer.memory import Remembered
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.limits import MOST_RECORDS
from sds_core.observer.mvds.shard_state import ShardState
from sds_core.observer.record import RawRecord
from sds_core.observer.sds import frame_filter
from sds_core.observer.sds.channel_state import ChannelState
from sds_core.observer.sds.copies import PackedBroadcasts
from sds_core.observer.sds.frame_filter import Filter
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.limits import MOST_HISTORY, MOST_REQUESTS
from sds_core.observer.sds.messages import Message
from sds_core.observer.sds.receivers import WATCHED
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.table import PackedTable
from sds_core.observer.tap_kind import TAPS
from sds_core.observer.tap_view import MAX_HOLES, TapState
from sds_core.wire import Dialect
from tests.support.frames import START_MS
from tests.support.hostile.combined import (
    SHAPES,
    TRIPLE,
    Names,
    Record,
    batch,
    dialect_of,
    pairs,
    prelude,
)
from tests.support.hostile.pipeline import Pipeline

STATES: dict[str, Any] = {
    CHANNELS.prefix: ChannelState,
    SHARD_VIEWS.prefix: ShardState,
    TAPS.prefix: TapState,
}

MOST_ENTRIES = (
    # Ids of the history, and their senders.
    2 * MOST_HISTORY
    + MOST_REQUESTS
    # What the sender's filter shows it to lack.
    + 2 * DEFAULTS.awaited
    # Ids of a payload, and the peers, pairs and groups of each.
    + 3 * MOST_RECORDS
    # The frame itself, its sender and its tap, in all memories.
    + 100
)
"""Entries that one record can add to all states together."""

MOST_SEARCHES = (
    # Messages without acknowledgement, and gaps.
    2 * DEFAULTS.searched
    # Messages that the sender may lack.
    + DEFAULTS.awaited
    + MOST_REQUESTS
    + WATCHED
)
"""Ids that a record's filter is searched for."""


@cache
def prepared(dialect: Dialect) -> tuple[dict[str, bytes], dict[str, int], int]:
    """States and deadlines after the prelude, and the number of its records."""
    pipeline, records = Pipeline(), prelude(dialect)
    for at in range(0, len(records), 500):
        pipeline.take(raw(at, records[at : at + 500]))
    return pipeline.blobs, pipeline.deadlines, len(records)


def begun(names: Names) -> tuple[Pipeline, int]:
    """A pipeline after the prelude for these shapes, and the next offset."""
    blobs, deadlines, offset = prepared(dialect_of(names))
    pipeline = Pipeline()
    pipeline.blobs, pipeline.deadlines = dict(blobs), dict(deadlines)
    return pipeline, offset


def raw(offset: int, records: Iterable[Record]) -> list[RawRecord]:
    """The records as Kafka has them."""
    return [
        RawRecord(0, offset + n, START_MS + one.at_ms, None, one.value, one.headers)
        for n, one in enumerate(records)
    ]


def entries(pipeline: Pipeline) -> int:
    """Number of entries of all states."""
    count = 0
    for key, data in pipeline.blobs.items():
        prefix = key.partition(":")[0]
        if prefix == DEAD_LETTERS.prefix:
            continue
        body = blob.split(blob.verified(data))[1]
        count += sum(_lengths(msgspec.msgpack.decode(body, type=STATES[prefix])))
    return count


def _lengths(part: Any) -> Iterator[int]:
    if isinstance(part, PackedTable | Remembered):
        yield len(unpack_ints(part.keys, signed=True))
    elif isinstance(part, PackedBroadcasts):
        yield len(unpack_ints(part.contents, signed=True))
    elif isinstance(part, msgspec.Struct):
        for field in msgspec.structs.fields(part):
            yield from _lengths(getattr(part, field.name))
    elif isinstance(part, dict | list):
        yield len(part)
        for one in part.values() if isinstance(part, dict) else part:
            yield from _lengths(one)


def added_by(names: Names) -> list[int]:
    """Entries that each record of a batch of these shapes adds; each is a batch."""
    pipeline, offset = begun(names)
    before, added = entries(pipeline), []
    for record in batch(0, names)[:3]:
        pipeline.take(raw(offset, [record]))
        offset += 1
        now = entries(pipeline)
        added.append(now - before)
        before = now
    return added


@pytest.mark.parametrize(
    "name",
    [
        # To find ids that collide takes its time.
        pytest.param(name, marks=pytest.mark.slow) if "colliding" in name else name
        for name in SHAPES
    ],
)
def test_record_of_any_shape_adds_a_limited_number_of_entries(name: str) -> None:
    """In all views that it concerns."""
    assert max(added_by((name,))) <= MOST_ENTRIES


@pytest.mark.long
def test_record_of_any_two_shapes_adds_a_limited_number_of_entries() -> None:
    """And one of the three that are known to be the dearest together."""
    added = {names: max(added_by(names)) for names in [TRIPLE, *pairs()]}
    assert not {
        names: number for names, number in added.items() if number > MOST_ENTRIES
    }


@pytest.mark.parametrize(
    "names",
    [
        TRIPLE,
        *((name, "one of many senders") for name in SHAPES if "filter" in name),
    ],
    ids=" + ".join,
)
def test_filter_is_searched_for_a_limited_number_of_ids(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many messages, gaps and requests there are."""
    if Path(frame_filter.__file__).suffix != ".py":
        pytest.skip("methods of the compiled filter cannot be counted")
    searched = [0]
    contains, holds = Filter.contains, Filter.holds

    def counted_id(self: Filter, message_id: str) -> bool:
        searched[0] += 1
        return contains(self, message_id)

    def counted_message(self: Filter, message: Message) -> bool:
        searched[0] += 1
        return holds(self, message)

    monkeypatch.setattr(Filter, "contains", counted_id)
    monkeypatch.setattr(Filter, "holds", counted_message)
    pipeline, offset = begun(names)
    for record in batch(0, names)[:4]:
        searched[0] = 0
        pipeline.take(raw(offset, [record]))
        offset += 1
        assert 0 < searched[0] <= MOST_SEARCHES


def test_numbers_of_a_tap_keep_a_limited_number_of_gaps() -> None:
    """In a batch of any size; see `tests/sds_core/observer/test_tap_view.py`."""
    pipeline = Pipeline()
    numbers = [str(2 * number).encode() for number in range(15_000)]
    records = [Record(0, b"x", (("observer", b"t"), ("seq", one))) for one in numbers]
    pipeline.take(raw(0, records))
    pipeline.take(raw(15_000, [Record(1, b"x")]))
    assert MAX_HOLES <= entries(pipeline) <= MAX_HOLES + 1_000
