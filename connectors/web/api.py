"""The JSON API: every figure and every incident, in the words of the report.

A channel is the object that the report has for it, its `id`, what people call it and
whether it is muted. Times are Unix milliseconds, durations milliseconds where the name
says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters
from connectors.web.lookups import Lookups, read_figures
from connectors.web.parameters import hours, incident_query, number
from connectors.web.refusals import NoChannel
from connectors.web.sources import Sources
from connectors.web.summary import by_trouble, channels_by_tap, summarise
from connectors.web.trends import Growth
from sds_core.observer.histogram import Histogram
from sds_core.observer.incidents import incident_object
from sds_core.observer.report import channel_report
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.tap_view import TapTotals

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


def routes(sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The routes of the API; what cannot be answered raises a `Refusal`."""

    # None is async, and so they are called in threads: they go through all channels,
    # or read files.
    def channels(request: Request) -> Response:
        """All channels, the most troubled first, and the job.

        Query parameters: `limit`, how many channels at most; `id`, or `key`, of the
        only one that is wanted.
        """
        given = request.query_params
        limit = number(given, "limit")
        snapshot = sources.current()
        wanted = parameters.channel(given, "id", snapshot) if snapshot.primed else None
        return _json(_fleet_object(snapshot, wanted, limit))

    def channel(request: Request) -> Response:
        """One channel by its percent-encoded id."""
        snapshot = read_figures(sources)
        wanted = request.path_params["id"]
        return _json(_channel_object(snapshot, wanted, _totals(snapshot, wanted)))

    def incidents(request: Request) -> Response:
        """Incidents, found last first.

        Query parameters: `channel`, its id, or its `key`; `kind`; `since`, Unix ms,
        for those found then or later and those that still stand; `standing=true`, for
        those alone that do; `limit`, how many at most.
        """
        asked = number(request.query_params, "limit")
        snapshot = read_figures(sources)
        query = incident_query(request.query_params, snapshot)
        limit = SHOWN_INCIDENTS if asked is None else asked
        # One more than is shown tells whether there are more.
        found = lookups.incidents(msgspec.structs.replace(query, limit=limit + 1))
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

    def taps(request: Request) -> Response:
        """All taps by id."""
        snapshot = read_figures(sources)
        channels = channels_by_tap(snapshot)
        return _json(
            {
                "clock": snapshot.clock_ms or None,
                "taps": [
                    _tap_object(observer, tap, channels[observer])
                    for observer, tap in sorted(snapshot.taps.items())
                ],
            }
        )

    def minutes(request: Request) -> Response:
        """What happened to a channel, interval by interval.

        Query parameters: `channel`, its id, or its `key`; `hours`, how many to look
        back.
        """
        given = request.query_params
        shown_hours = hours(given)
        snapshot = read_figures(sources)
        wanted = parameters.channel(given, "channel", snapshot) or ""
        _totals(snapshot, wanted)
        trend = lookups.trend(snapshot, wanted, shown_hours)
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


def refusal(status: int, message: str, values: Mapping[str, str]) -> Response:
    """An answer that says in one line why there is no other."""
    return _json({"error": message, **values}, status)


def _fleet_object(
    snapshot: Snapshot, wanted: str | None, limit: int | None
) -> dict[str, Any]:
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
            for channel, totals in _chosen(snapshot, wanted)[:limit]
        ],
    }


def _chosen(snapshot: Snapshot, wanted: str | None) -> list[tuple[str, ChannelTotals]]:
    if wanted is None:
        return by_trouble(snapshot)
    return [(wanted, _totals(snapshot, wanted))]


def _totals(snapshot: Snapshot, wanted: str) -> ChannelTotals:
    totals = snapshot.channels.get(wanted)
    if totals is None:
        raise NoChannel("id", wanted)
    return totals


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


def _tap_object(observer: str, tap: TapTotals, channels: int) -> dict[str, Any]:
    return {
        "id": observer,
        "last_seen": tap.last_seen_ms,
        "missing_records": tap.missing_records,
        "last_hole": tap.last_hole_ms,
        "holes": [list(span) for span in tap.holes],
        "channel_count": channels,
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
