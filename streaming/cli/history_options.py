"""Options for where the history goes."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.kafka.settings import (
    INCIDENTS_TOPIC,
    MINUTES_TOPIC,
    VERDICTS_TOPIC,
    KafkaSettings,
)
from streaming.cli.option_group import option_group
from streaming.cli.settings import setting
from streaming.settings import HistorySettings


def _history_settings(
    history: Path | None,
    history_days: int,
    history_topics: bool,
    incidents_topic: str,
    minutes_topic: str,
    verdicts_topic: str,
    kafka: KafkaSettings,
    checkpoint: Path,
) -> HistorySettings:
    """Build the settings; the history is in the checkpoint unless the user moves it.

    Raises:
        click.UsageError: Two of the four topics are the same.
    """
    topics = {incidents_topic, minutes_topic, verdicts_topic, kafka.topic}
    if len(topics) < 4:
        message = (
            f"--topic {kafka.topic}, --incidents-topic {incidents_topic}, "
            f"--minutes-topic {minutes_topic} and --verdicts-topic {verdicts_topic} "
            "must be four: each holds records of one kind"
        )
        raise click.UsageError(message)
    return HistorySettings(
        (history or checkpoint / "history").absolute(),
        history_days,
        history_topics,
        incidents_topic,
        minutes_topic,
        verdicts_topic,
    )


history_options = option_group(
    "history",
    (
        setting(
            "--history",
            type=click.Path(file_okay=False, path_type=Path),
            help="Directory of the history; by default in the checkpoint's directory.",
        ),
        setting(
            "--history-days",
            type=click.IntRange(1, 36_500),
            default=30,
            help="Days for which the history is stored.",
        ),
        setting(
            "--history-topics/--no-history-topics",
            default=True,
            help="Write the history to Kafka as well.",
        ),
        setting(
            "--incidents-topic",
            default=INCIDENTS_TOPIC,
            help="Topic for the incidents of the history.",
        ),
        setting(
            "--minutes-topic",
            default=MINUTES_TOPIC,
            help="Topic for the minutes of the history.",
        ),
        setting(
            "--verdicts-topic",
            default=VERDICTS_TOPIC,
            help="Topic for the shown verdicts of the history.",
        ),
    ),
    _history_settings,
    shared=("kafka", "checkpoint"),
)
"""Adds the options; the command gets ``history``, a `HistorySettings`.

Stands below the options that give ``kafka`` and ``checkpoint``.
"""
