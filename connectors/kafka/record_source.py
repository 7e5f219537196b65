"""Reads single records of a topic by partition and offset."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from connectors.kafka.consumer import OffsetRange, read_ranges
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import Client, KafkaSettings, RecordsLost
from sds_core.observer.record import RawRecord

_NEARBY = 100
"""If two requested offsets differ by at most this number, they are read as one
range."""

_SOURCE = re.compile(r"([A-Za-z0-9._-]{1,249}):(\d{1,10}):(\d{1,18})")


class RecordSource(NamedTuple):
    """Place of a record."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        """Return the place in the form of header `dead-letter-source`."""
        return f"{self.topic}:{self.partition}:{self.offset}"


def parse_source(text: str) -> RecordSource | None:
    """Parse ``topic:partition:offset``; return None for other text."""
    found = _SOURCE.fullmatch(text)
    if found is None:
        return None
    return RecordSource(found[1], int(found[2]), int(found[3]))


def read_source(settings: KafkaSettings, source: RecordSource) -> RawRecord | None:
    """Read a record; None if the topic does not hold it.

    The topic is the one in `source`. The topic in `settings` is ignored.

    Raises:
        TopicMissing: The topic does not exist.
        KafkaUnreachable: No broker answered.
    """
    settings = replace(settings, topic=source.topic)
    with closing(TopicOffsets(settings)) as offsets:
        partition = source.partition
        if partition not in offsets.partitions():
            return None
        first = offsets.earliest([partition])[partition]
        end = offsets.latest([partition])[partition]
    if not first <= source.offset < end:
        return None
    # The result is None if the offset holds a transaction marker instead of a record.
    return next(read_places(settings, [(partition, source.offset)]), None)


def read_places(
    settings: KafkaSettings,
    places: Iterable[tuple[int, int]],
    client: Client = Client.CONFLUENT,
) -> Iterator[RawRecord]:
    """Yield the records at `places` that still exist, in order of partition and offset.

    `places` has the partition and the offset of each record.

    Raises:
        KafkaUnreachable: No broker answered.
    """
    places = set(places)
    for place in _ranges(sorted(places)):
        for record in _held(client, settings, place):
            if (record.partition, record.offset) in places:
                yield record


def _held(
    client: Client, settings: KafkaSettings, place: OffsetRange
) -> Iterator[RawRecord]:
    while place.start < place.end:
        try:
            yield from read_ranges(settings, [place], client)
            return
        except RecordsLost:
            partition = place.partition
            with closing(TopicOffsets(settings)) as offsets:
                first = offsets.earliest([partition])[partition]
            if first <= place.start:
                # The topic was deleted and recreated, and ends before the range.
                return
            place = place._replace(start=first)


def _ranges(places: Sequence[tuple[int, int]]) -> Iterator[OffsetRange]:
    """Yield ranges of offsets that contain all places; `places` must be sorted."""
    for partition, pairs in groupby(places, key=itemgetter(0)):
        offsets = [offset for _, offset in pairs]
        first = offsets[0]
        for before, offset in pairwise(offsets):
            if offset - before > _NEARBY:
                yield OffsetRange(partition, first, before + 1)
                first = offset
        yield OffsetRange(partition, first, offsets[-1] + 1)
