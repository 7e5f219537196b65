"""Options of `incidents`: where incidents are read from, and which ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click

from streaming.cli.settings import Time, nearest_given, option_group, setting

DEFAULT_API = "http://127.0.0.1:9108"


class IncidentSource(NamedTuple):
    """Source of incidents; at most one of the first three attributes is set.

    `views` is the prefix of the kind of view that is meant; None for channels of SDS.
    """

    report: Path | None = None
    api: str = DEFAULT_API
    history: Path | None = None
    views: str | None = None


class IncidentFilter(NamedTuple):
    """Which incidents to list.

    Attributes:
        channel: Only those of this channel; None for all.
        since_ms: Only those found at this time, Unix ms, or later, and those that
            are unresolved; None for all.
        standing: Only unresolved ones.
    """

    channel: str | None
    since_ms: int | None
    standing: bool


def _source(
    report: Path | None, api: str | None, history: Path | None, views: str | None
) -> IncidentSource:
    """Return the source that is given nearest: by option, environment or file."""
    places: dict[str, Any] = {"report": report, "api": api, "history": history}
    name = nearest_given(*places)
    return IncidentSource(**({name: places[name]} if name else {}), views=views)


source_options = option_group(
    "source",
    (
        setting(
            "--report",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Read incidents from a report that was written with --report-detail.",
        ),
        setting(
            "--api",
            metavar="URL",
            help=f"Read incidents from a running monitor.  [default: {DEFAULT_API}]",
        ),
        setting(
            "--history",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Read incidents from the directory of a history.",
        ),
        setting(
            "--views",
            metavar="PREFIX",
            help="Incidents of another protocol, named as in the address of its page: "
            "--channel is then the name of one of its views.",
        ),
    ),
    _source,
)

filter_options = option_group(
    "selection",
    (
        setting("--channel", help="Only incidents of this channel."),
        setting(
            "--since",
            "since_ms",
            type=Time(),
            help="Only incidents found since then, and those that are unresolved.",
        ),
        setting("--standing", is_flag=True, help="Only unresolved incidents."),
    ),
    IncidentFilter,
)
