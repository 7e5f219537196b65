"""Options for how a job reads a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from connectors.kafka.settings import Client, KafkaSettings
from streaming.cli.settings import Panel, option_group, setting
from streaming.cli.values import Integer, MemberOf
from streaming.master import LOCAL, check_master, is_submitted
from streaming.settings import READ_TASKS, BatchLimits, SessionSettings, SourceSettings


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """How a job reads a topic; `SourceSettings` describes `tasks`."""

    client: Client
    limits: BatchLimits
    session: SessionSettings
    tasks: int

    def source(self, kafka: KafkaSettings, **others: Any) -> SourceSettings:
        """Return the settings of a topic's reader; `others` are further attributes."""
        return SourceSettings(
            kafka, client=self.client, limits=self.limits, tasks=self.tasks, **others
        )


def _checked_master(
    _: click.Context, __: click.Parameter, value: str | None
) -> str | None:
    if value is None:
        return None if is_submitted() else LOCAL
    if is_submitted():
        message = (
            "spark-submit sets the master: give --master to spark-submit, not to "
            "sds-monitor"
        )
        raise click.BadParameter(message)
    try:
        check_master(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


def _reading_settings(
    client: Client,
    max_batch_records: int,
    max_batch_bytes: int,
    shuffle_partitions: int | None,
    master: str | None,
    read_tasks: int | None,
) -> ReadingSettings:
    session = SessionSettings(master, shuffle_partitions)
    if read_tasks is None:
        read_tasks = 0 if session.is_cluster else READ_TASKS
    return ReadingSettings(
        client, BatchLimits(max_batch_records, max_batch_bytes), session, read_tasks
    )


master_option = setting(
    "--master",
    callback=_checked_master,
    metavar="URL",
    panel=Panel.SPARK,
    help="Spark master, such as spark://HOST:PORT; by default, Spark runs on this "
    "machine.",
)

reading_options = option_group(
    "reading",
    (
        master_option,
        setting(
            "--read-tasks",
            type=Integer(1),
            help="Number of workers that read from Kafka at the same time; by "
            "default 2 on this machine, and one for each core on a cluster.",
        ),
        setting(
            "--client",
            type=MemberOf(Client),
            default=Client.CONFLUENT.value,
            panel=Panel.KAFKA,
            help="Kafka client library with which the job reads frames.",
        ),
        setting(
            "--max-batch-records",
            type=Integer(1),
            default=BatchLimits().rows,
            panel=Panel.LIMITS,
            help="Maximum number of Kafka records per batch.",
        ),
        setting(
            "--max-batch-bytes",
            type=Integer(1),
            default=BatchLimits().size_bytes,
            panel=Panel.LIMITS,
            help="Maximum size, in bytes, of the Kafka records in a batch. The job "
            "estimates a batch's size from the mean record size.",
        ),
        setting(
            "--shuffle-partitions",
            type=Integer(1),
            help="Number of partitions of the state; by default, one for each core. "
            "After the first batch of a checkpoint, the number cannot change.",
        ),
    ),
    _reading_settings,
    panel=Panel.SPARK,
)
"""Adds the options that set how a job reads a topic.

The command gets ``reading``, a `ReadingSettings`.
"""
