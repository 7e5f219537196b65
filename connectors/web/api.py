"""The JSON API: every figure of the snapshot, in the words of the report.

A channel is the object that the report has for it, and its `id`. Times are Unix
milliseconds, durations milliseconds where the name says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from connectors.web.status import (
    by_trouble,
    channel_text,
    snapshot_text,
    summarise,
)
from sds_core.observer.report import channel_report
from sds_core.observer.snapshot import JobFigures, Snapshot

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class _AnyText(Convertor[str]):
    """Starlette's own `path` stops at a line end, and then finds another channel."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anytext", _AnyText())


def routes(current: Callable[[], Snapshot]) -> list[BaseRoute]:
    """The routes of the API.

    Args:
        current: Gives the snapshot to answer from.
    """

    async def channels(request: Request) -> Response:
        """All channels, the most troubled first, and the job.

        Query parameters: `limit`, how many channels at most; `text=true`, with the
        words of the status page beside the figures.
        """
        limit = request.query_params.get("limit")
        if limit is not None and not re.fullmatch("[0-9]{1,9}", limit):
            return _error(400, "limit must be a whole number, 0 or more")
        return _json(
            fleet_object(
                current(),
                limit=None if limit is None else int(limit),
                text=request.query_params.get("text") == "true",
            )
        )

    async def channel(request: Request) -> Response:
        """One channel by its percent-encoded id."""
        wanted = request.path_params["id"]
        totals = current().channels.get(wanted)
        if totals is None:
            return _error(404, "no channel has this id", id=wanted)
        return _json({"id": wanted} | channel_report(totals))

    return [
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


def _json(content: dict[str, Any], status: int = 200) -> JSONResponse:
    return JSONResponse(content, status_code=status, headers=_HEADERS)


def _error(status: int, message: str, **values: str) -> JSONResponse:
    return _json({"error": message, **values}, status)
