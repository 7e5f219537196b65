"""Writes dead letters back to their topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby

import click

from connectors.kafka.dead_letter_reader import (
    DeadLetterReader,
    StoredLetter,
    described,
)
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.producer import target_partition, topic_record, write
from connectors.kafka.record_source import RecordSource
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.judgement import Dead, judge
from sds_core.observer.record import RawRecord
from sds_core.text import counted, number, printable
from streaming.cli.actions.dead_letter_show import not_found, whole_record
from streaming.cli.exit_codes import ExitCode
from streaming.cli.log import logger
from streaming.cli.output import wall_ms

Wanted = str | frozenset[RecordSource] | None
"""Which dead letters to replay: a reason, some sources, or None for all."""

_Sent = tuple[RecordSource, RawRecord]


@dataclass(slots=True)
class Replay:
    """One replay of dead letters to a topic; None for the topic of each source.

    With `force`, the replay also writes records that still cannot be used. `found` has
    the sources of dead letters that exist.
    """

    kafka: KafkaSettings
    dead_letter_topic: str
    topic: str | None
    force: bool
    dry_run: bool
    found: set[RecordSource] = field(default_factory=set)
    refused: int = 0

    def run(self, selection: Wanted) -> None:
        """Write the records, and print what was written."""
        letters = (
            letter
            for letter in DeadLetterReader(self.kafka, self.dead_letter_topic)
            if selection is None
            or letter.reason == selection
            or (isinstance(selection, frozenset) and letter.source in selection)
        )
        written = 0
        for target, records in groupby(
            self._usable(letters), lambda pair: self.topic or pair[0].topic
        ):
            written += self._write(records, target)
        missing: list[RecordSource] = []
        if isinstance(selection, frozenset):
            missing = sorted(selection - self.found)
        if missing:
            logger.warning("%s", not_found(missing, self.dead_letter_topic))
        verb = "would be written" if self.dry_run else "written"
        click.echo(
            f"{counted(written, 'record')} {verb}, {number(self.refused)} refused"
        )
        if self.refused or missing:
            raise click.exceptions.Exit(ExitCode.FINDING)

    def _usable(self, letters: Iterable[StoredLetter]) -> Iterator[_Sent]:
        for letter in letters:
            self.found.add(letter.source)
            record = whole_record(self.kafka, letter)
            if record is None:
                self.refused += 1
                logger.warning(
                    "%s is refused: the dead letter is truncated (%s), and topic %s "
                    "no longer has the record",
                    letter.source,
                    described(letter.cut_sizes),
                    printable(letter.source.topic),
                )
                continue
            record = _marked(record)
            judged = judge(record, wall_ms())
            if isinstance(judged, Dead) and not self.force:
                self.refused += 1
                why = printable(judged.explanation)
                logger.warning("%s refused: %s: %s", letter.source, judged.reason, why)
                continue
            yield letter.source, record

    def _write(self, records: Iterable[_Sent], topic: str) -> int:
        printed = _printed(records, topic, self.dry_run)
        if self.dry_run:
            return sum(1 for _ in printed)
        settings = replace(self.kafka, topic=topic)
        with closing(TopicOffsets(settings)) as offsets:
            partitions = len(offsets.partitions())
        placed = (topic_record(r, target_partition(r, partitions)) for r in printed)
        return write(placed, settings)


def _marked(record: RawRecord) -> RawRecord:
    """Return the record with its header `source` set to `replay`."""
    headers = [(name, value) for name, value in record.headers if name != "source"]
    return record._replace(headers=(*headers, ("source", b"replay")))


def _printed(
    records: Iterable[_Sent], topic: str, dry_run: bool
) -> Iterator[RawRecord]:
    verb = "would go" if dry_run else "goes"
    for source, record in records:
        click.echo(f"{source} {verb} to {topic}")
        yield record
