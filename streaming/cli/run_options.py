"""Options of `run`: the job, its history, the web server, Prometheus and the audit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from connectors.kafka.settings import (
    DEAD_LETTER_TOPIC,
    INCIDENTS_TOPIC,
    MINUTES_TOPIC,
    VERDICTS_TOPIC,
    KafkaSettings,
)
from sds_core.text import shown
from streaming.cli.channels import channel_table, channels_option
from streaming.cli.config_file import observer_settings
from streaming.cli.kafka_options import kafka_reading_options
from streaming.cli.log import LogFormat
from streaming.cli.reading_options import ReadingSettings, reading_options
from streaming.cli.serving_options import WebAddress, serving_options
from streaming.cli.settings import (
    Panel,
    log_option,
    option_group,
    report_option,
    setting,
)
from streaming.cli.values import DIRECTORY, Duration, Integer, Parsed, Time
from streaming.settings import (
    EARLIEST,
    FORGET_DAYS,
    LABEL_BUDGET,
    LATEST,
    HistorySettings,
    JobSettings,
)


def _history_settings(
    history: Path | None,
    history_days: int,
    history_topics: bool,
    kafka: KafkaSettings,
    checkpoint: Path,
    **topics: str,
) -> HistorySettings:
    flags = {"topic": kafka.topic, **dict(sorted(topics.items()))}
    names = [*kafka.topics, *topics.values()]
    if DEAD_LETTER_TOPIC in names:
        message = (
            f"the monitor writes dead letters to topic {DEAD_LETTER_TOPIC}, which must "
            "contain no other records: give another topic"
        )
        raise click.UsageError(message)
    if len(set(names)) < len(names):
        *first, last = (
            f"--{name.replace('_', '-')} {topic}" for name, topic in flags.items()
        )
        message = (
            f"{', '.join(first)} and {last} must be different topics, because each "
            "topic contains only one kind of record"
        )
        raise click.UsageError(message)
    directory = (history or checkpoint / "history").absolute()
    return HistorySettings(directory, history_days, history_topics, **topics)


history_options = option_group(
    "history",
    (
        setting(
            "--history",
            type=DIRECTORY,
            panel=Panel.STORAGE,
            help="Directory of the history; by default, a directory in the checkpoint.",
        ),
        setting(
            "--history-days",
            type=Duration("d", 1, 36_500, is_whole=True),
            default=30,
            panel=Panel.STORAGE,
            help="How long the history keeps its rows.",
        ),
        setting(
            "--history-topics/--no-history-topics",
            default=True,
            help="Also write the history to Kafka.",
        ),
        setting(
            "--incidents-topic",
            default=INCIDENTS_TOPIC,
            help="Topic to write incidents to.",
        ),
        setting(
            "--minutes-topic",
            default=MINUTES_TOPIC,
            help="Topic to write per-minute aggregates to.",
        ),
        setting(
            "--verdicts-topic",
            default=VERDICTS_TOPIC,
            help="Topic to write the verdicts of channels to.",
        ),
    ),
    _history_settings,
    panel=Panel.KAFKA,
    shared=("kafka", "checkpoint"),
)
"""Adds the options of the history; the command gets ``history``.

The command must also have options that set ``kafka`` and ``checkpoint``, because the
settings of the history are computed from their values too.
"""


def checked_url(text: str) -> str | None:
    """Return a URL, or None if the text is empty.

    Thus an empty text on the command line disables a URL of the configuration file.
    """
    if text and not text.startswith(("http://", "https://")):
        message = f"{shown(text)} is not a URL: use a URL such as http://127.0.0.1:9090"
        raise ValueError(message)
    return text or None


def _job_settings(
    kafka: KafkaSettings,
    reading: ReadingSettings,
    checkpoint: Path,
    history: HistorySettings,
    channels: Path | None,
    start: str | int,
    on_lost_records: str,
    trigger: float,
    **others: Any,
) -> JobSettings:
    return JobSettings(
        reading.source(kafka, start=start, skip_lost=on_lost_records == "skip"),
        checkpoint.absolute(),
        trigger_s=trigger,
        history=history,
        channel_table=channel_table(channels),
        observer=observer_settings(),
        **others,
    )


job_options = option_group(
    "job",
    (
        setting(
            "--start",
            type=Time(EARLIEST, LATEST),
            default=EARLIEST,
            panel=Panel.KAFKA,
            help="Position in the topic at which a job with a new checkpoint starts "
            "to read.",
        ),
        setting(
            "--until-caught-up",
            is_flag=True,
            panel=Panel.KAFKA,
            help="End when the job has read all records that the topic contains at "
            "startup.",
        ),
        setting(
            "--trigger",
            type=Duration("s", 0),
            default=1.0,
            help="Minimum time between the starts of two batches.",
        ),
        setting(
            "--on-lost-records",
            type=click.Choice(["fail", "skip"]),
            default="fail",
            panel=Panel.KAFKA,
            help="What the job does if Kafka has deleted unread records or the whole "
            "topic.",
        ),
        setting(
            "--label-budget",
            type=Integer(0),
            default=LABEL_BUDGET,
            panel=Panel.LIMITS,
            help="Maximum number of channels that have a metric label of their own.",
        ),
        setting(
            "--forget-days",
            type=Duration("d", 0, 3_650, is_whole=True),
            default=FORGET_DAYS,
            help="Time without records after which the monitor forgets a channel; 0 "
            "disables forgetting.",
        ),
        setting(
            "--report-detail",
            is_flag=True,
            panel=Panel.OUTPUT,
            help="Add all incidents and all definite acknowledgements to the report. "
            "The option applies only to new checkpoints.",
        ),
    ),
    _job_settings,
    panel=Panel.TIME,
    shared=("reading", "channels"),
)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Values of `run_options`.

    If `prometheus`, `audit`, `report` or `channels` is None, the feature is disabled.

    Attributes:
        prometheus: URL of the Prometheus that evaluates the alerts.
        audit: URL at which `sds-monitor audit --every` serves its metrics.
        channels: File of the channel table. On SIGHUP, the command reads the file
            again.
    """

    job: JobSettings
    reading: ReadingSettings
    address: WebAddress
    log_format: LogFormat
    retry_for: float | None
    prometheus: str | None
    audit: str | None
    report: Path | None
    channels: Path | None
    heartbeat: bool

    @property
    def retry_for_s(self) -> float | None:
        """Maximum time for retries, seconds: the argument `longest_s` of `Retries`.

        If ``--retry-for`` is omitted, the result is 0 for a job with
        ``--until-caught-up``, and None for other jobs.
        """
        ends = self.job.until_caught_up
        return 0.0 if self.retry_for is None and ends else self.retry_for


run_options = option_group(
    "settings",
    (
        kafka_reading_options,
        setting(
            "--checkpoint",
            required=True,
            type=DIRECTORY,
            panel=Panel.STORAGE,
            help="State directory. If the job restarts with the same directory, it "
            "continues where it stopped.",
        ),
        serving_options("the page and the metrics", 9108),
        setting(
            "--prometheus",
            type=Parsed("URL", checked_url),
            panel=Panel.WEB,
            help="URL of the Prometheus whose firing alerts the page shows.",
        ),
        setting(
            "--audit",
            type=Parsed("URL", checked_url),
            panel=Panel.WEB,
            help="URL of the metrics of `sds-monitor audit --every`. If the audit "
            "finds that the mirror lacks a recent message, the message's channel "
            "becomes blind.",
        ),
        setting(
            "--heartbeat",
            is_flag=True,
            panel=Panel.KAFKA,
            help="Write heartbeats to the topic on behalf of taps that write none.",
        ),
        report_option,
        setting(
            "--retry-for",
            type=Duration("s", 0),
            panel=Panel.TIME,
            help="How long the job retries while Kafka is unreachable; 0 disables "
            "retries. By default, the job retries forever, or not at all if "
            "--until-caught-up is given.",
        ),
        channels_option,
        history_options,
        reading_options,
        job_options,
        log_option(exposed=True),
    ),
    RunSettings,
)
"""Adds all options of `run`; the command gets ``settings``, a `RunSettings`."""
