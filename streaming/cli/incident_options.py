"""Options that say where to read incidents, and which incidents to list."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click
from click.core import ParameterSource

from streaming.cli.log import logger
from streaming.cli.settings import Panel, nearest_given, option_group, setting
from streaming.cli.values import FILE, Time

DEFAULT_API = "http://127.0.0.1:9108"


class IncidentSource(NamedTuple):
    """Source of incidents: a monitor's API, unless a report or a history is given.

    At most one of `report` and `history` is given. `views` is the PREFIX of the option
    ``--views``; None means channels of SDS. `names_api` says whether the user gave the
    address of the API; it may be the default.
    """

    report: Path | None = None
    api: str = DEFAULT_API
    history: Path | None = None
    views: str | None = None
    names_api: bool = False


class IncidentFilter(NamedTuple):
    """Values of `filter_options`: which incidents to list; None means no filter."""

    channel: str | None
    since_ms: int | None
    standing: bool


def _source(
    from_report: Path | None,
    report: Path | None,
    api: str,
    history: Path | None,
    views: str | None,
) -> IncidentSource:
    names = ["from_report", "api", "history"]
    # In the environment and in files, `report` is a setting of `run` and other jobs.
    source = click.get_current_context().get_parameter_source("report")
    if source is ParameterSource.COMMANDLINE:
        names.append("report")
    match nearest_given(*names):
        case "api":
            return IncidentSource(api=api, views=views, names_api=True)
        case "history":
            return IncidentSource(history=history, views=views)
        case "report":
            logger.warning("--report was renamed: use --from-report")
            return IncidentSource(report, views=views)
    return IncidentSource(from_report, views=views)


source_options = option_group(
    "source",
    (
        setting(
            "--from-report",
            type=FILE,
            help="Read incidents from a report that a job with --report-detail wrote.",
        ),
        # `--report` is the old name of `--from-report`, and works until version 2.0.
        # It was renamed, because `--report` of other commands writes a report.
        setting("--report", type=FILE, hidden=True),
        setting(
            "--api",
            metavar="URL",
            default=DEFAULT_API,
            help="Read incidents from the running monitor at this URL.",
        ),
        setting(
            "--history",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Read incidents from the history in this directory.",
        ),
        setting(
            "--views",
            metavar="PREFIX",
            help="Read incidents of the protocol whose page has the address "
            "/views/PREFIX. If --views is given, --channel must be a group or "
            "channel of this protocol.",
        ),
    ),
    _source,
    panel=Panel.SOURCE,
)

filter_options = option_group(
    "selection",
    (
        setting("--channel", help="Show only incidents of this channel."),
        setting(
            "--since",
            "since_ms",
            type=Time(),
            help="Omit resolved incidents that were found before this time.",
        ),
        setting("--standing", is_flag=True, help="Show only unresolved incidents."),
    ),
    IncidentFilter,
    panel=Panel.CHANNELS,
)
