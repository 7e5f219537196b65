"""The JSON API: every figure and every incident, in the words of the report.

A channel is the object that the report has for it, its `id`, what people call it and
whether it is muted. Times are Unix milliseconds, durations milliseconds where the name
says so.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from connectors.history.errors import DamagedHistory, NoHistory
from connectors.web.parameters import hours, incident_query, number
from connectors.web.sources import Sources
from connectors.web.summary import by_trouble, channels_shown_by, summarise
from connectors.web.trends import Growth, recent_trend
from sds_core.observer.incidents import incident_object
from sds_core.observer.report import channel_report
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.totals import ChannelTotals, Histogram, TapTotals

SHOWN_INCIDENTS = 1_000
"""In one answer, unless more are asked for."""

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class _AnyText(Convertor[str]):
    """Starlette's own `path` stops at a line end, and then finds another channel."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anytext", _AnyText())


def routes(sources: Sources) -> list[BaseRoute]:
    """The routes of the API; parameters that make no sense raise `WrongParameter`."""

    async def channels(request: Request) -> Response:
        """All channels, the most troubled first, and the job.

        Query parameter: `limit`, how many channels at most.
        """
        limit = number(request.query_params, "limit")
        return _json(_fleet_object(sources.current(), limit))

    async def channel(request: Request) -> Response:
        """One channel by its percent-encoded id."""
        snapshot = sources.current()
        wanted = request.path_params["id"]
        totals = snapshot.channels.get(wanted)
        if totals is None:
            return _no_channel(wanted)
        return _json(_channel_object(snapshot, wanted, totals))

    # Not async, and so called in a thread: it reads files.
    def incidents(request: Request) -> Response:
        """Incidents, found last first.

        Query parameters: `channel`, its id; `kind`; `since`, Unix ms, for those found
        then or later and those that still stand; `standing=true`, for those alone
        that do; `limit`, how many at most.
        """
        query = incident_query(request.query_params)
        asked = number(request.query_params, "limit")
        snapshot = sources.current()
        if not snapshot.primed:
            return _starting()
        limit = SHOWN_INCIDENTS if asked is None else asked
        # One more than is shown tells whether there are more.
        limited = msgspec.structs.replace(query, limit=limit + 1)
        try:
            found = sources.find_incidents(limited)
        except (NoHistory, DamagedHistory) as error:
            return refusal(500, str(error))
        return _json(
            {
                "incidents": [
                    incident_object(one)
                    | {"channel_name": _name(snapshot, one.channel)}
                    for one in found[:limit]
                ],
                "more": len(found) > limit,
            }
        )

    async def taps(request: Request) -> Response:
        """All taps by id."""
        snapshot = sources.current()
        return _json(
            {
                "clock": snapshot.clock_ms or None,
                "taps": [
                    _tap_object(snapshot, observer, tap)
                    for observer, tap in sorted(snapshot.taps.items())
                ],
            }
        )

    # Not async, and so called in a thread: it reads files.
    def minutes(request: Request) -> Response:
        """What happened to a channel, interval by interval.

        Query parameters: `channel`, its id; `hours`, how many to look back.
        """
        shown_hours = hours(request.query_params)
        wanted = request.query_params.get("channel", "")
        snapshot = sources.current()
        if not snapshot.primed:
            return _starting()
        totals = snapshot.channels.get(wanted)
        if totals is None:
            return _no_channel(wanted)
        try:
            trend = recent_trend(
                sources.find_minutes,
                wanted,
                first_event_ms=totals.first_event_ms or 0,
                clock_ms=snapshot.clock_ms,
                hours=shown_hours,
            )
        except (NoHistory, DamagedHistory) as error:
            return refusal(500, str(error))
        return _json(
            {
                "channel": wanted,
                "hours": shown_hours,
                "interval_ms": trend.step_ms,
                "intervals": [
                    {"begin": begin_ms, "figures": _growth_object(growth)}
                    for begin_ms, growth in zip(
                        trend.begins_ms, trend.growth, strict=True
                    )
                ],
            }
        )

    return [
        Route("/api/v1/incidents", incidents),
        Route("/api/v1/taps", taps),
        Route("/api/v1/minutes", minutes),
        Route("/api/v1/channels", channels),
        Route("/api/v1/channels/{id:anytext}", channel),
    ]


def refusal(status: int, message: str, **values: str) -> Response:
    """An answer that says in one line why there is no other."""
    return _json({"error": message, **values}, status)


def _fleet_object(snapshot: Snapshot, limit: int | None) -> dict[str, Any]:
    summary = summarise(snapshot)
    return {
        "ok": snapshot.ok,
        "level": summary.level.value,
        "summary": summary.sentence,
        "clock": snapshot.clock_ms or None,
        "job": {"primed": snapshot.primed} | _job_object(snapshot.job),
        "undecodable": dict(snapshot.undecodable),
        "channel_count": len(snapshot.channels),
        "channels": [
            _channel_object(snapshot, channel, totals)
            for channel, totals in by_trouble(snapshot)[:limit]
        ],
    }


def _channel_object(
    snapshot: Snapshot, channel: str, totals: ChannelTotals
) -> dict[str, Any]:
    said = {
        "id": channel,
        "name": _name(snapshot, channel),
        "muted": channel in snapshot.muted,
    }
    return said | channel_report(totals)


def _name(snapshot: Snapshot, channel: str) -> str | None:
    return snapshot.table.of(channel).name or None


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
        }
        | _percentiles(durations),
        "state_bytes": job.state_bytes,
        "restarts": job.restarts,
    }


def _tap_object(snapshot: Snapshot, observer: str, tap: TapTotals) -> dict[str, Any]:
    return {
        "id": observer,
        "last_seen": tap.last_seen_ms,
        "missing_records": tap.missing_records,
        "last_hole": tap.last_hole_ms,
        "holes": [list(span) for span in tap.holes],
        "channel_count": channels_shown_by(snapshot, observer),
    }


def _growth_object(growth: Growth | None) -> dict[str, Any] | None:
    if growth is None:
        return None
    latency = growth.latency
    return dict(growth.counts) | {
        "ack_latency_ms": {"count": latency.count} | _percentiles(latency)
    }


def _percentiles(histogram: Histogram) -> dict[str, int | None]:
    return {f"p{percent}": histogram.percentile_ms(percent) for percent in (50, 95, 99)}


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return JSONResponse(content, status_code=status, headers=_HEADERS)


def _starting() -> Response:
    return refusal(503, "the monitor is starting: ask again in a few seconds")


def _no_channel(channel: str) -> Response:
    return refusal(404, "no channel has this id", id=channel)
