"""Options of `plan`: where to read the history, and what to compute from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from streaming.cli.incident_options import DEFAULT_API
from streaming.cli.settings import (
    Panel,
    format_option,
    nearest_given,
    option_group,
    setting,
)
from streaming.cli.values import FILE, Duration, Integer

if TYPE_CHECKING:
    from sds_core.planning.forecast import ForecastSettings


BASE, MEASURED = "base", "measured"
"""Column headings of the tables of `what-if`, which no variant can have as its name."""

Changes = dict[str, str]
"""Key of a setting in a channel's plan -> its new value, as text."""


class PlanSource(NamedTuple):
    """Source of the history; at most one of `history` and `api` is set.

    `api` is the URL of a monitor. `views` is the prefix of a kind of view; None for
    channels of SDS. `channel` is the name of a channel, view or group; None selects
    all. Only the last `days` days of the history are read.
    """

    history: Path | None
    api: str | None
    views: str | None
    channel: str | None
    days: int


class Question(NamedTuple):
    """A question of `what-if`: what changed settings would do to a channel.

    The file `plan` describes the channel; if it is None, the history at `source` does.
    The base is the channel with the settings in `assumed`. Each variant is the base
    with some settings changed. `seeds` is the number of simulations of the base and of
    each variant.
    """

    source: PlanSource | None
    plan: Path | None
    assumed: Changes
    variants: dict[str, Changes]
    seeds: int


def nearest_source(
    history: Path | None,
    api: str | None,
    views: str | None,
    channel: str | None,
    fit_days: int,
) -> PlanSource:
    """Return the source of the history.

    If both `--history` and `--api` are given, `nearest_given` selects one.
    """
    if nearest_given("history", "api") == "history":
        return PlanSource(history, None, views, channel, fit_days)
    return PlanSource(None, api, views, channel, fit_days)


def _settings(interval: int, **others: Any) -> ForecastSettings:
    # Imported here, because the module loads numpy, which other commands do not need.
    from sds_core.planning.forecast import ForecastSettings

    return ForecastSettings(coverage=interval / 100, **others)


history_option = setting(
    "--history",
    type=click.Path(path_type=Path),
    metavar="DIR",
    panel=Panel.SOURCE,
    help="Read the history in this directory.",
)
api_option = setting(
    "--api",
    "--url",
    "api",
    metavar="URL",
    panel=Panel.SOURCE,
    default=DEFAULT_API,
    help="Read the history of the running monitor at this URL.",
)

source_options = option_group(
    "source",
    (
        history_option,
        api_option,
        setting(
            "--views",
            metavar="PREFIX",
            help="Read the history of the protocol whose page has the address "
            "/views/PREFIX. If --views is given, --channel must be a group or "
            "channel of this protocol.",
        ),
        setting(
            "--channel",
            show_default="all channels, and their sum",
            help="Forecast only this channel.",
        ),
        setting(
            "--fit-days",
            # A forecast needs 14 whole days. The first hour of the history cannot be
            # used, so the minimum is 15 days.
            type=Duration("d", 15, 365, is_whole=True),
            default=56,
            help="Length of the history that the forecast uses.",
        ),
    ),
    nearest_source,
    panel=Panel.SOURCE,
)

forecast_options = option_group(
    "settings",
    (
        setting(
            "--days",
            type=Duration("d", 7, 365, is_whole=True),
            default=90,
            help="How far ahead the command looks for limits.",
        ),
        setting(
            "--interval",
            type=click.IntRange(50, 99),
            default=80,
            metavar="PERCENT",
            help="Probability that a forecast interval contains the future value.",
        ),
        setting(
            "--epoch-messages",
            type=Integer(1),
            default=100,
            help="Rate limit: number of messages that a participant may send in 10 "
            "minutes.",
        ),
        setting(
            "--kafka-retention-days",
            "retention_days",
            type=Duration("d", 1, 36_500, is_whole=True),
            help="Retention of the topic with the frames; needed to forecast the "
            "topic's size.",
        ),
        setting(
            "--kafka-replication",
            "replication",
            type=click.IntRange(1, 100),
            default=1,
            help="Replication factor of the topic with the frames.",
        ),
        setting(
            "--record-bytes",
            type=click.IntRange(0, 1_000_000),
            default=260,
            help="Size of a Kafka record without the frame, in bytes; mainly key and "
            "headers.",
        ),
    ),
    _settings,
    panel=Panel.FORECAST,
)

tables_or_json_option = format_option("table", "Print tables, or one JSON object.")

html_option = setting(
    "--html",
    type=FILE,
    metavar="FILE",
    panel=Panel.OUTPUT,
    help="Also write a web page with charts to this file. The page loads nothing "
    "from the network.",
)
