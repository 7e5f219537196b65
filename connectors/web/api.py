"""The JSON API: every figure and every incident, with the keys of the report.

A channel is its object of the report with its `id`, its name and whether it is muted.
Times are Unix milliseconds; durations are milliseconds if the name ends in `_ms`.
Lists come in pages (`connectors.web.paging`): an answer with more entries after it has
a `next`, which is the parameter `after` of the request for these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters, verdict_api, view_api
from connectors.web.answers import answer, causes_of_views, growth_object
from connectors.web.held_words import held_object
from connectors.web.incident_places import ListedIncident
from connectors.web.lookups import Lookups, read_figures
from connectors.web.paging import PageRequest, Reference, next_page
from connectors.web.parameters import hours, incident_query
from connectors.web.participants import participant_object, table_of
from connectors.web.refusals import NoChannel
from connectors.web.sources import Sources
from connectors.web.summary import by_trouble, channels_by_tap, summarise, trouble_of
from sds_core.observer.cause_finding import causes_of
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.incidents import incident_object
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import JobFigures, Snapshot
from sds_core.observer.tap_figures import TAP_FIGURES


class _ChannelPlace(NamedTuple):
    """The place of a channel in the list, see `summary.Trouble`."""

    muted: bool
    rank: int
    channel: Reference


class _AnyText(Convertor[str]):
    """Any text: Starlette's own `path` stops at a line end, in the middle of an id."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("anytext", _AnyText())


def routes(
    sources: Sources, lookups: Lookups, table: FigureTable[Any]
) -> list[BaseRoute]:
    """The routes of the API; a request that cannot be answered raises a `Refusal`.

    Args:
        sources: Source of the figures.
        lookups: Source of incidents and minutes.
        table: The figures of channels.
    """

    # These functions are synchronous, so Starlette runs them in its thread pool: they
    # go through all channels, or read files.
    def channels(request: Request) -> Response:
        """Channels, the most troubled first, and the job.

        Query parameters: `limit` and `after`, see `PageRequest`; `id` or `key` to
        select one channel.
        """
        given = request.query_params
        page = PageRequest.of(given)
        snapshot = sources.current()
        wanted = parameters.channel(given, "id", snapshot) if snapshot.primed else None
        return answer(_fleet_object(table, snapshot, wanted, page))

    def channel(request: Request) -> Response:
        """One channel by its percent-encoded id."""
        snapshot = read_figures(sources)
        wanted = request.path_params["id"]
        totals = _totals(snapshot, wanted)
        return answer(_channel_object(table, snapshot, wanted, totals))

    def incidents(request: Request) -> Response:
        """Incidents, the latest found first.

        Query parameters: `channel`, an id, or `key`; `kind`; `since`, Unix ms, for
        incidents found then or later and incidents that have not ended;
        `standing=true`, for incidents that have not ended; `limit` and `after`, see
        `PageRequest`.
        """
        page = PageRequest.of(request.query_params)
        place = page.place(ListedIncident)
        snapshot = read_figures(sources)
        query = incident_query(request.query_params, snapshot)
        if place is not None:
            after = place.find(snapshot.views[CHANNELS.prefix].totals)
            query = msgspec.structs.replace(query, after=after)
        # One more than the limit, to know whether there are more.
        query = msgspec.structs.replace(query, limit=page.limit + 1)
        found = lookups.incidents(query)
        shown, more = found[: page.limit], len(found) > page.limit
        return answer(
            {
                "incidents": [
                    incident_object(one, snapshot.observer)
                    | {"channel_name": _name(snapshot, one.channel)}
                    for one in shown
                ],
                "causes": causes_of_views(snapshot, CHANNELS, shown),
                "clock": snapshot.clock_ms or None,
                "more": more,
                "next": next_page(ListedIncident.of(shown[-1]))
                if more and shown
                else None,
            }
        )

    def taps(request: Request) -> Response:
        """Taps by id; query parameters: `limit` and `after`, see `PageRequest`."""
        page = PageRequest.of(request.query_params)
        place = page.place(Reference)
        snapshot = read_figures(sources)
        channels = channels_by_tap(snapshot)
        shown, more = page.cut(
            sorted(snapshot.taps),
            None if place is None else place.find(snapshot.taps),
            lambda observer: observer,
        )
        return answer(
            {
                "clock": snapshot.clock_ms or None,
                "taps": [
                    _tap_object(snapshot, observer, channels[observer])
                    for observer in shown
                ],
                "wrong_clocks": dict(snapshot.job.clock.skewed_taps),
                "next": next_page(Reference.to(shown[-1])) if more and shown else None,
            }
        )

    def participants(request: Request) -> Response:
        """Participants of a channel, those that lack most first.

        Query parameters: `channel`, an id, or `key`.
        """
        snapshot = read_figures(sources)
        wanted = parameters.channel(request.query_params, "channel", snapshot) or ""
        table = table_of(_totals(snapshot, wanted))
        return answer(
            {
                "channel": wanted,
                "channel_name": _name(snapshot, wanted),
                "clock": snapshot.clock_ms or None,
                "participants": [participant_object(one) for one in table.participants],
                "others": table.others,
            }
        )

    def minutes(request: Request) -> Response:
        """Growth of a channel's figures, interval by interval.

        Query parameters: `channel`, an id, or `key`; `hours`, up to now.
        """
        given = request.query_params
        chosen_hours = hours(given)
        snapshot = read_figures(sources)
        wanted = parameters.channel(given, "channel", snapshot) or ""
        _totals(snapshot, wanted)
        trend = lookups.trend(table, snapshot, wanted, chosen_hours)
        return answer(
            {
                "channel": wanted,
                "hours": chosen_hours,
                "interval_ms": trend.step_ms,
                "intervals": [
                    {"begin": begin_ms, "figures": growth_object(table, growth)}
                    for begin_ms, growth in zip(
                        trend.begins_ms, trend.growth, strict=True
                    )
                ],
            }
        )

    return [
        *view_api.routes(sources, lookups),
        *verdict_api.routes(sources, lookups),
        Route("/api/v1/incidents", incidents),
        Route("/api/v1/taps", taps),
        Route("/api/v1/participants", participants),
        Route("/api/v1/minutes", minutes),
        Route("/api/v1/channels", channels),
        Route("/api/v1/channels/{id:anytext}", channel),
    ]


def refusal(status: int, message: str, values: Mapping[str, str]) -> Response:
    """A response that says in one line why the request cannot be answered."""
    return answer({"error": message, **values}, status)


def _fleet_object(
    table: FigureTable[Any], snapshot: Snapshot, wanted: str | None, page: PageRequest
) -> dict[str, Any]:
    summary = summarise(snapshot)
    shown, after = _chosen(snapshot, wanted, page)
    return {
        "ok": snapshot.ok,
        "level": summary.level.value,
        "summary": summary.sentence,
        "clock": snapshot.clock_ms or None,
        "job": {"primed": snapshot.primed} | _job_object(snapshot.job),
        "undecodable": dict(snapshot.undecodable),
        "held_back": [
            held_object(*one) for one in snapshot.views[CHANNELS.prefix].held_back
        ],
        "channel_count": len(snapshot.views[CHANNELS.prefix].totals),
        "channels": [
            _channel_object(table, snapshot, channel, totals)
            for channel, totals in shown
        ],
        "next": after,
    }


def _chosen(
    snapshot: Snapshot, wanted: str | None, page: PageRequest
) -> tuple[Sequence[tuple[str, Any]], str | None]:
    """Return the channels of a page, and the `next` of the answer."""
    place = page.place(_ChannelPlace)
    if wanted is not None:
        return [(wanted, _totals(snapshot, wanted))][: page.limit], None
    trouble = trouble_of(snapshot)
    begin = None
    if place is not None:
        muted, rank, channel = place
        begin = muted, rank, channel.find(snapshot.views[CHANNELS.prefix].totals)
    shown, more = page.cut(by_trouble(snapshot), begin, trouble)
    if not (more and shown):
        return shown, None
    muted, rank, name = trouble(shown[-1])
    return shown, next_page(_ChannelPlace(muted, rank, Reference.to(name)))


def _totals(snapshot: Snapshot, wanted: str) -> Any:
    totals = snapshot.views[CHANNELS.prefix].totals.get(wanted)
    if totals is None:
        raise NoChannel("id", wanted)
    return totals


def _channel_object(
    table: FigureTable[Any], snapshot: Snapshot, channel: str, totals: Any
) -> dict[str, Any]:
    return {
        "id": channel,
        "name": _name(snapshot, channel),
        "muted": channel in snapshot.views[CHANNELS.prefix].muted,
        "causes": [one.as_object() for one in causes_of(snapshot, totals, CHANNELS)],
        "held_back": [
            held_object(channel, one)
            for one in snapshot.views[CHANNELS.prefix].excused.get(channel, ())
            if one.holds_back and channel not in snapshot.views[CHANNELS.prefix].muted
        ],
        **table.report(totals),
    }


def _name(snapshot: Snapshot, channel: str) -> str | None:
    return snapshot.table.of(channel).name or None


def _job_object(job: JobFigures) -> dict[str, Any]:
    return {
        "running": job.running,
        "error": job.error,
        "retrying": job.retrying,
        "kafka_answered": job.kafka.answered_ms,
        "topic_missing_since": job.topic_missing_since_ms,
        "version": job.version,
        "rules": job.rules,
        "records": job.records,
        "records_behind": job.records_behind,
        "event_time_lag_seconds": job.event_time_lag_seconds,
        "batch_duration_ms": job.batch_duration.summary(),
        "state_bytes": job.state_bytes,
        "restarts": job.restarts,
    }


def _tap_object(snapshot: Snapshot, observer: str, channels: int) -> dict[str, Any]:
    tap = snapshot.taps[observer]
    return {
        "id": observer,
        **TAP_FIGURES.report(tap),
        "clock_offset_ms": snapshot.job.clock.taps.get(observer),
        "holes": [list(span) for span in tap.holes],
        "channel_count": channels,
    }
