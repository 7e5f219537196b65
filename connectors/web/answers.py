"""Answers of the JSON API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.responses import JSONResponse, Response

from connectors.web.trends import Growth
from sds_core.observer.cause_finding import causes_of
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.figures import Unit
from sds_core.observer.incidents import ChannelIncident
from sds_core.observer.kinds import AnyKind
from sds_core.observer.snapshot import Snapshot
from sds_core.times import with_utc

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def answer(content: dict[str, Any], status: int = 200) -> Response:
    """Return an object as JSON, which no cache stores.

    Times stand in it as numbers and as RFC 3339, see `sds_core.times`.
    """
    return JSONResponse(with_utc(content), status_code=status, headers=_HEADERS)


def causes_of_views(
    snapshot: Snapshot, kind: AnyKind, found: Iterable[ChannelIncident]
) -> dict[str, Any]:
    """Return the likely causes of the views that have these incidents, by name.

    Views without a likely cause are left out, and those that have ended.
    """
    views = snapshot.views[kind.prefix].totals
    names = {one.channel for one in found} & views.keys()
    causes = {
        name: [one.as_object() for one in causes_of(snapshot, views[name], kind)]
        for name in sorted(names)
    }
    return {name: some for name, some in causes.items() if some}


def growth_object(
    table: FigureTable[Any], growth: Growth | None
) -> dict[str, Any] | None:
    """Return the growth of each figure; None if it is unknown."""
    if growth is None:
        return None
    counts: dict[str, Any] = {}
    durations: dict[str, Any] = {}
    for figure in table.grown:
        key = figure.growth_key or figure.field
        if figure.unit is Unit.DURATIONS:
            found = growth.histogram(figure.field)
            durations[key] = {"count": found.count, **found.percentiles()}
        else:
            counts[key] = growth.counts[figure.field]
    return counts | durations
