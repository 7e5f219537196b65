"""The JSON API of the verdicts that were shown of views of every kind.

Keys, times and pages are those of `connectors.web.api`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import parameters
from connectors.web.answers import answer
from connectors.web.lookups import Lookups, read_figures
from connectors.web.paging import PageRequest, next_page
from connectors.web.refusals import NoChannel
from connectors.web.sources import Sources
from sds_core.observer.minutes import MINUTE_MS
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.shown_verdicts import DAY_MS, minutes_by_verdict


class _SpanPlace(NamedTuple):
    """The place of a span in the list.

    Attributes:
        begin_ms: Its begin, Unix ms.
    """

    begin_ms: int


def routes(sources: Sources, lookups: Lookups) -> list[BaseRoute]:
    """The routes; a request that cannot be answered raises a `Refusal`.

    Args:
        sources: Source of the figures.
        lookups: Source of the verdicts.
    """

    # These functions are synchronous, so Starlette runs them in its thread pool.
    def verdicts(request: Request) -> Response:
        """Verdicts of a channel; query parameters: `channel` or `key`, see `found`."""
        return found(request, CHANNELS.prefix, "channel")

    def of_views(request: Request) -> Response:
        """Verdicts of a view; query parameters: `id` or `key`, see `found`."""
        return found(request, request.path_params["prefix"], "id")

    def found(request: Request, prefix: str, label: str) -> Response:
        """What was shown in each minute between two times, oldest first.

        Query parameters: `from` and `to`, Unix ms of wall time, by default the last 24
        hours; `limit` and `after`, see `PageRequest`.
        """
        given = request.query_params
        page = PageRequest.of(given)
        place = page.place(_SpanPlace)
        since_ms, until_ms = _times(given, lookups.verdicts_until_ms(prefix) or 0)
        snapshot = read_figures(sources)
        views = snapshot.views.get(prefix)
        if views is None:
            raise HTTPException(404)
        wanted = parameters.view(given, label, views.totals) or ""
        if wanted not in views.totals:
            raise NoChannel("id", wanted)
        spans = lookups.verdicts(prefix, wanted, since_ms, until_ms)
        shown, more = page.cut(spans, place, lambda span: _SpanPlace(span.begin_ms))
        return answer(
            {
                label: wanted,
                "from": since_ms,
                "to": until_ms,
                "minutes": minutes_by_verdict(spans),
                "verdicts": [
                    {
                        "from": span.begin_ms,
                        "to": span.end_ms,
                        "verdict": span.verdict,
                        "reason": span.reason,
                    }
                    for span in shown
                ],
                "next": next_page(_SpanPlace(shown[-1].begin_ms))
                if more and shown
                else None,
            }
        )

    return [
        Route("/api/v1/verdicts", verdicts),
        Route("/api/v1/views/{prefix}/verdicts", of_views),
    ]


def _times(given: Mapping[str, str], known_ms: int) -> tuple[int, int]:
    """Return the requested begin and end, Unix ms, rounded to the minutes around them.

    Args:
        given: The parameters.
        known_ms: End of the last minute of which something is known, Unix ms.

    Raises:
        WrongParameter: A value is not allowed.
    """
    to_ms = parameters.number(given, "to")
    until_ms = known_ms
    if to_ms is not None:
        until_ms = min(-(-to_ms // MINUTE_MS) * MINUTE_MS, known_ms)
    from_ms = parameters.number(given, "from")
    since_ms = until_ms - DAY_MS if from_ms is None else from_ms
    return max(since_ms // MINUTE_MS * MINUTE_MS, 0), until_ms
