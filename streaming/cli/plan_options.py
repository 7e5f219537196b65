"""Options of `plan`: where the history is read from, and what is asked of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from streaming.cli.incident_options import DEFAULT_API
from streaming.cli.settings import nearest_given, option_group, setting

if TYPE_CHECKING:
    from sds_core.planning.forecast import ForecastSettings


class PlanSource(NamedTuple):
    """Where the history is read from; at most one of the first two is set.

    Attributes:
        history: Directory of a history.
        api: URL of a monitor.
        views: Prefix of the kind of view; None for channels of SDS.
        channel: Only this channel, view or group; None for all.
        days: Days of the history to use.
    """

    history: Path | None
    api: str | None
    views: str | None
    channel: str | None
    days: int


def _source(
    history: Path | None,
    api: str | None,
    views: str | None,
    channel: str | None,
    fit_days: int,
) -> PlanSource:
    history, api = nearest_source(history, api)
    return PlanSource(history, api, views, channel, fit_days)


def nearest_source(
    history: Path | None, api: str | None
) -> tuple[Path | None, str | None]:
    """Return the source that is given nearest, see `nearest_given`."""
    if nearest_given("history", "api") == "history":
        return history, None
    return None, api or DEFAULT_API


def _settings(interval: int, **others: Any) -> ForecastSettings:
    # numpy, which other commands do not need.
    from sds_core.planning.forecast import ForecastSettings

    return ForecastSettings(coverage=interval / 100, **others)


history_option = setting(
    "--history",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Read the directory of a history.",
)
api_option = setting(
    "--api",
    "--url",
    "api",
    metavar="URL",
    help=f"Read the history of a running monitor.  [default: {DEFAULT_API}]",
)

source_options = option_group(
    "source",
    (
        history_option,
        api_option,
        setting(
            "--views",
            metavar="PREFIX",
            help="Views of another protocol, named as in the address of its page: "
            "--channel is then the name of one of them.",
        ),
        setting("--channel", help="Only this channel.  [default: all, and their sum]"),
        setting(
            "--fit-days",
            # The first hour does not count, and 14 whole days are needed.
            type=click.IntRange(15, 365),
            default=56,
            help="Days of the history that the forecast follows.",
        ),
    ),
    _source,
)

forecast_options = option_group(
    "settings",
    (
        setting(
            "--days",
            type=click.IntRange(7, 365),
            default=90,
            help="Days to look ahead for limits.",
        ),
        setting(
            "--interval",
            type=click.IntRange(50, 99),
            default=80,
            metavar="PERCENT",
            help="Probability of the intervals.",
        ),
        setting(
            "--epoch-messages",
            type=click.IntRange(1),
            default=100,
            help="Messages of a participant in a rate-limit epoch of 10 minutes.",
        ),
        setting(
            "--kafka-retention-days",
            "retention_days",
            type=click.IntRange(1, 36_500),
            help="Retention of the topic of frames, for a forecast of its size.",
        ),
        setting(
            "--kafka-replication",
            "replication",
            type=click.IntRange(1, 100),
            default=1,
            help="Replication factor of the topic of frames.",
        ),
        setting(
            "--record-bytes",
            type=click.IntRange(0, 1_000_000),
            default=260,
            help="Bytes of a Kafka record beside the frame: key, headers, framing.",
        ),
    ),
    _settings,
)

format_option = setting(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    help="Tables, or one JSON object.",
)

html_option = setting(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page with charts, too; the file needs no network.",
)
