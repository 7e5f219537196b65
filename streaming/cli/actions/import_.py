"""Writes the records of a file to a topic."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.files.importing import import_file
from connectors.files.record_file import UnreadableFile
from connectors.kafka.producer import Acknowledgements
from connectors.kafka.settings import InvalidTopic, KafkaSettings
from streaming.cli.exit_codes import wrong_use
from streaming.cli.output import wall_ms
from streaming.cli.writing import ending_requested


def import_records(
    kafka: KafkaSettings,
    file: Path,
    partitions: int | None,
    speed: float,
    restamp: bool,
) -> None:
    """Write the records of a file to a topic, and print how many; see `import_file`.

    Raises:
        click.UsageError: The file cannot be read or has no record.
    """
    acknowledged = Acknowledgements()
    with (
        wrong_use(InvalidTopic, UnreadableFile),
        ending_requested(acknowledged) as ending,
    ):
        count = import_file(
            file,
            kafka,
            now_ms=wall_ms(),
            speed=speed,
            stop=ending,
            partitions=partitions,
            restamp=restamp,
            acknowledged=acknowledged,
        )
    if not (count or ending.is_set()):
        message = f"{file} contains no record"
        raise click.UsageError(message)
    click.echo(f"{count:,} records of {file} written to {kafka.topic}")
