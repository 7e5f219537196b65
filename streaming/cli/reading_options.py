"""Options for how a job reads a topic."""

from __future__ import annotations

from dataclasses import dataclass

import click

from connectors.kafka.settings import Client
from streaming.cli.option_group import option_group
from streaming.cli.settings import setting
from streaming.settings import BatchLimits, SessionSettings


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """How a job reads a topic.

    Attributes:
        client: Library that reads frames.
        limits: Upper limits of one batch.
        session: Settings of Spark.
    """

    client: Client
    limits: BatchLimits
    session: SessionSettings


def _reading_settings(
    client: str,
    max_batch_records: int,
    max_batch_bytes: int,
    shuffle_partitions: int | None,
) -> ReadingSettings:
    return ReadingSettings(
        Client(client),
        BatchLimits(max_batch_records, max_batch_bytes),
        SessionSettings(shuffle_partitions=shuffle_partitions),
    )


reading_options = option_group(
    "reading",
    (
        setting(
            "--client",
            type=click.Choice([client.value for client in Client]),
            default=Client.CONFLUENT.value,
            help="Library that reads frames.",
        ),
        setting(
            "--max-batch-records",
            type=click.IntRange(1),
            default=BatchLimits().rows,
            help="Most Kafka records in one batch.",
        ),
        setting(
            "--max-batch-bytes",
            type=click.IntRange(1),
            default=BatchLimits().size_bytes,
            help="Most bytes of records in one batch, estimated by their mean size.",
        ),
        setting(
            "--shuffle-partitions",
            type=click.IntRange(1),
            help="Partitions of the state, by default one for each core; the first "
            "batch of a checkpoint fixes them.",
        ),
    ),
    _reading_settings,
)
"""Adds the options; the command gets ``reading``, a `ReadingSettings`."""
