"""The JSON API: every figure and every incident, in the words of the report.

A channel is the object that the report has for it, and its `id`. Times are Unix
milliseconds, durations milliseconds where the name says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.web.status import (
    by_trouble,
    channel_text,
    snapshot_text,
    summarise,
)
from sds_core.observer.incidents import (
    ChannelIncident,
    IncidentKind,
    IncidentQuery,
    incident_object,
)
from sds_core.observer.report import channel_report
from sds_core.observer.snapshot import JobFigures, Snapshot

SHOWN_INCIDENTS = 1_000
"""In one answer, unless more are asked for."""

FindIncidents = Callable[[IncidentQuery], Sequence[ChannelIncident]]

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class _AnyText(Convertor[str]):
    """Starlette's own `path` stops at a line end, and then finds another channel."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anytext", _AnyText())


def routes(
    current: Callable[[], Snapshot], find_incidents: FindIncidents
) -> list[BaseRoute]:
    """The routes of the API.

    Args:
        current: Gives the snapshot to answer from.
        find_incidents: Gives incidents, found last first.
    """

    async def channels(request: Request) -> Response:
        """All channels, the most troubled first, and the job.

        Query parameters: `limit`, how many channels at most; `text=true`, with the
        words of the status page beside the figures.
        """
        try:
            limit = _number(request.query_params, "limit")
        except _WrongParameter as error:
            return _error(400, str(error))
        text = request.query_params.get("text") == "true"
        return _json(fleet_object(current(), limit=limit, text=text))

    async def channel(request: Request) -> Response:
        """One channel by its percent-encoded id."""
        wanted = request.path_params["id"]
        totals = current().channels.get(wanted)
        if totals is None:
            return _error(404, "no channel has this id", id=wanted)
        return _json({"id": wanted} | channel_report(totals))

    # Not async, and so called in a thread: it reads a file.
    def incidents(request: Request) -> Response:
        """Incidents, found last first.

        Query parameters: `channel`, its id; `kind`; `since`, Unix ms, for those found
        then or later and those that still stand; `standing=true`, for those alone
        that do; `limit`, how many at most.
        """
        try:
            query = _incident_query(request.query_params)
            asked = _number(request.query_params, "limit")
        except _WrongParameter as error:
            return _error(400, str(error))
        limit = SHOWN_INCIDENTS if asked is None else asked
        # One more than is shown tells whether there are more.
        try:
            found = find_incidents(msgspec.structs.replace(query, limit=limit + 1))
        except (NoHistory, DamagedHistory) as error:
            return _error(500, str(error))
        return _json(
            {
                "incidents": [incident_object(one) for one in found[:limit]],
                "more": len(found) > limit,
            }
        )

    return [
        Route("/api/v1/incidents", incidents),
        Route("/api/v1/channels", channels),
        Route("/api/v1/channels/{id:anytext}", channel),
    ]


def fleet_object(
    snapshot: Snapshot, *, limit: int | None = None, text: bool = False
) -> dict[str, Any]:
    """The object behind `/api/v1/channels` and the status page.

    Args:
        snapshot: The figures.
        limit: How many channels at most, the most troubled; None for all.
        text: Whether to add the words of the status page.
    """
    summary = summarise(snapshot)
    chosen = by_trouble(snapshot)[:limit]
    fleet: dict[str, Any] = {
        "ok": snapshot.ok,
        "level": summary.level.value,
        "summary": summary.sentence,
        "clock": snapshot.clock_ms or None,
        "job": {"primed": snapshot.primed} | _job_object(snapshot.job),
        "undecodable": dict(snapshot.undecodable),
        "channel_count": len(snapshot.channels),
        "channels": [
            {"id": channel} | channel_report(totals) for channel, totals in chosen
        ],
    }
    if text:
        fleet["text"] = snapshot_text(snapshot, len(chosen))
        for entry, (channel, totals) in zip(fleet["channels"], chosen, strict=True):
            entry["text"] = channel_text(channel, totals)
    return fleet


def _job_object(job: JobFigures) -> dict[str, Any]:
    durations = job.batch_duration
    return {
        "running": job.running,
        "error": job.error,
        "version": job.version,
        "records": job.records,
        "records_behind": job.records_behind,
        "event_time_lag_seconds": job.event_time_lag_seconds,
        "batch_duration_ms": {
            "count": durations.count,
            "sum": durations.sum_ms,
            "p50": durations.percentile_ms(50),
            "p95": durations.percentile_ms(95),
            "p99": durations.percentile_ms(99),
        },
        "state_bytes": job.state_bytes,
        "restarts": job.restarts,
    }


class _WrongParameter(ValueError):
    """A query parameter makes no sense; the message says what would."""


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    # As many digits as an integer of 64 bits has room for.
    if not re.fullmatch("[0-9]{1,18}", text):
        message = f"{name} must be a whole number, 0 or more"
        raise _WrongParameter(message)
    return int(text)


def _one_of(given: Mapping[str, str], name: str, allowed: Sequence[str]) -> str | None:
    text = given.get(name)
    if text is not None and text not in allowed:
        message = f"{name} must be one of {', '.join(allowed)}"
        raise _WrongParameter(message)
    return text


def _incident_query(given: Mapping[str, str]) -> IncidentQuery:
    kind = _one_of(given, "kind", list(IncidentKind))
    return IncidentQuery(
        channel=given.get("channel"),
        kind=None if kind is None else IncidentKind(kind),
        since_ms=_number(given, "since"),
        standing=_one_of(given, "standing", ["true", "false"]) == "true",
    )


def _json(content: dict[str, Any], status: int = 200) -> JSONResponse:
    return JSONResponse(content, status_code=status, headers=_HEADERS)


def _error(status: int, message: str, **values: str) -> JSONResponse:
    return _json({"error": message, **values}, status)
