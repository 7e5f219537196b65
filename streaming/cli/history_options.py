"""Flags of where the history goes, and the settings they make."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from connectors.kafka.settings import INCIDENTS_TOPIC, MINUTES_TOPIC
from streaming.cli.settings import setting
from streaming.settings import HistorySettings


def history_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the flags of a history; the command gets ``history``, its settings.

    The history lies in the command's ``--checkpoint`` unless told otherwise, and its
    topics are others than that of the command's ``--topic``.
    """

    @functools.wraps(command)
    def collected(
        history: Path | None,
        history_days: int,
        history_topics: bool,
        incidents_topic: str,
        minutes_topic: str,
        **others: Any,
    ) -> None:
        _check(incidents_topic, minutes_topic, others["topic"])
        settings = HistorySettings(
            (history or others["checkpoint"] / "history").absolute(),
            history_days,
            history_topics,
            incidents_topic,
            minutes_topic,
        )
        command(history=settings, **others)

    for option in reversed(_OPTIONS):
        collected = option(collected)
    return collected


_OPTIONS = (
    setting(
        "--history",
        type=click.Path(file_okay=False, path_type=Path),
        help="Directory of the lasting history; in the checkpoint's if left out.",
    ),
    setting(
        "--history-days",
        type=click.IntRange(1, 36_500),
        default=30,
        help="Days for which the history is kept.",
    ),
    setting(
        "--history-topics/--no-history-topics",
        default=True,
        help="Write the history to Kafka as well.",
    ),
    setting(
        "--incidents-topic", default=INCIDENTS_TOPIC, help="Of the history in Kafka."
    ),
    setting("--minutes-topic", default=MINUTES_TOPIC, help="Of the history in Kafka."),
)


def _check(incidents_topic: str, minutes_topic: str, frames_topic: str) -> None:
    """Refuse topics of which one is another.

    Raises:
        click.UsageError: They are not three.
    """
    topics = {incidents_topic, minutes_topic, frames_topic}
    if len(topics) < 3:
        message = (
            f"--topic {frames_topic}, --incidents-topic {incidents_topic} and "
            f"--minutes-topic {minutes_topic} must be three: each holds records of "
            "one kind"
        )
        raise click.UsageError(message)
