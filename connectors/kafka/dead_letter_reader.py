"""Reads the dead-letter topic (docs/records.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from connectors.kafka.dead_letter import (
    CUT_HEADER,
    REASON_HEADER,
    SIZE_HEADER,
    SOURCE_HEADER,
)
from connectors.kafka.dead_letter_cut import Cuts, decode_cuts
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.record_source import RecordSource, parse_source
from connectors.kafka.settings import DEAD_LETTER_TOPIC, KafkaSettings, TopicMissing
from connectors.kafka.timeline import read_in_order_of_time
from sds_core.observer.record import RawRecord
from sds_core.text import printable

_OWN_HEADERS = frozenset({REASON_HEADER, SOURCE_HEADER, SIZE_HEADER, CUT_HEADER})


class StoredLetter(NamedTuple):
    """A dead letter as stored in its topic.

    Attributes:
        reason: Why the record is a dead letter: a `Reason`, possibly one that only
            another release has.
        source: Place of the original record.
        size_bytes: Original size of a cut value; None if the value is whole.
        record: The original record as far as it is stored, with its original partition
            and offset.
        cuts: Parts of the original record that are cut. Version 0.12 and earlier write
            only `size_bytes`, so `cuts` is empty.
    """

    reason: str
    source: RecordSource
    size_bytes: int | None
    record: RawRecord
    cuts: Cuts

    @property
    def is_whole(self) -> bool:
        """Whether the record is stored whole."""
        return self.size_bytes is None and not self.cuts

    @property
    def cut_sizes(self) -> dict[str, int]:
        """The original size of each cut part, by the part's name, bytes."""
        sizes = {name: cut.bytes for name, cut in self.cuts.items()}
        if self.size_bytes is not None:
            sizes["value"] = self.size_bytes
        return sizes


def described(cut_sizes: Mapping[str, int]) -> str:
    """Return `StoredLetter.cut_sizes` in words."""
    return ", ".join(
        f"{printable(name)} of {size:,} bytes"
        for name, size in sorted(cut_sizes.items())
    )


def read_letter(record: RawRecord) -> StoredLetter | None:
    """Parse a record of the dead-letter topic; None if it is not a dead letter."""
    headers = {name: value or b"" for name, value in record.headers}
    source = parse_source(headers.get(SOURCE_HEADER, b"").decode(errors="replace"))
    if source is None or REASON_HEADER not in headers:
        return None
    size = headers.get(SIZE_HEADER, b"")
    return StoredLetter(
        headers[REASON_HEADER].decode(errors="replace"),
        source,
        int(size) if size.isdigit() and len(size) < len(str(2**63)) else None,
        record._replace(
            partition=source.partition,
            offset=source.offset,
            headers=tuple(
                (name, value)
                for name, value in record.headers
                if name not in _OWN_HEADERS
            ),
        ),
        decode_cuts(headers.get(CUT_HEADER)),
    )


class DeadLetterReader:
    """Reads the dead letters that a topic holds when the iteration begins.

    Dead letters of a partition are in the order of writing. If the topic has several
    partitions, they are merged by the times of the records. If a dead letter was
    written twice because of a crash, it is returned once. If the topic of its source
    was recreated, dead letters of different records may have the same source; all of
    them are returned. The topic in `settings` is ignored; `topic` is read. `strangers`
    is the number of records that are not dead letters.
    """

    def __init__(self, settings: KafkaSettings, topic: str = DEAD_LETTER_TOPIC) -> None:
        self._settings = replace(settings, topic=topic)
        self.strangers = 0

    def __iter__(self) -> Iterator[StoredLetter]:
        """Yield the dead letters.

        Raises:
            TopicMissing: The topic does not exist. The monitor creates the topic before
                it writes the first dead letter.
            KafkaUnreachable: No broker answered.
            RecordsLost: Retention removed dead letters before they were read.
        """
        with closing(TopicOffsets(self._settings)) as offsets:
            partitions = self._partitions(offsets)
            starts = offsets.earliest(partitions)
            ends = offsets.latest(partitions)
            self.strangers = 0
            seen: set[tuple[RecordSource, int]] = set()
            for record in read_in_order_of_time(self._settings, offsets, starts, ends):
                letter = read_letter(record)
                if letter is None:
                    self.strangers += 1
                    continue
                content = letter.record.key, letter.record.value, letter.record.headers
                # The hash takes less memory than the content, which may be large.
                place = letter.source, hash(content)
                if place not in seen:
                    seen.add(place)
                    yield letter

    def _partitions(self, offsets: TopicOffsets) -> list[int]:
        try:
            return offsets.partitions()
        except TopicMissing as error:
            raise TopicMissing(
                error.topic,
                self._settings.bootstrap,
                "check --dead-letter-topic; the topic does not exist before the "
                "first dead letter",
            ) from error
