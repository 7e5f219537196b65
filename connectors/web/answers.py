"""Answers of the JSON API, and answers in plain text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from connectors.web.trends import Growth
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.figures import Unit
from sds_core.times import with_utc

_NONE: Mapping[str, str] = MappingProxyType({})
HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
"""With these headers, caches store no answers, and browsers render no answer as a
page."""


def answer(content: Mapping[str, Any], status: int = 200) -> Response:
    """Return an object as JSON, with each time also as a text (`sds_core.times`)."""
    return JSONResponse(with_utc(content), status_code=status, headers=HEADERS)


def plain_answer(line: str, status: int = 200) -> Response:
    """Return a line as plain text."""
    return PlainTextResponse(f"{line}\n", status, HEADERS)


def refusal(status: int, message: str, values: Mapping[str, str]) -> Response:
    """Return a JSON response whose `error` states why the request is refused."""
    return answer({"error": message, **values}, status)


def is_api(request: Request) -> bool:
    """Whether a request expects JSON."""
    return request.url.path.startswith("/api/")


def plain_refusal(
    request: Request, status: int, message: str, headers: Mapping[str, str] = _NONE
) -> Response:
    """Return a refusal as JSON for the API, else as text; a page is too expensive."""
    if is_api(request):
        made = refusal(status, message, {})
    else:
        made = plain_answer(message, status)
    made.headers.update(headers)
    return made


def growth_object(
    table: FigureTable[Any], growth: Growth | None
) -> dict[str, Any] | None:
    """Return the growth of each figure by key; None if the growth is unknown."""
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
            counts[key] = growth[figure.field]
    return counts | durations
