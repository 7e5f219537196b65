"""Responses to requests that are refused or fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connectors.web.answers import is_api, plain_answer, refusal
from connectors.web.crowding import PROBE, WATCHING
from connectors.web.refusals import Refusal

_HTTP = {
    404: "nothing was found at this address",
    405: "this address accepts only GET requests",
}
_UNFORESEEN = "the server failed to answer: see the error in its log"

Show = Callable[[Request, int, str], Response]
"""Creates a response from a request, an HTTP status, and the reason in one line."""


def show_text(request: Request, status: int, why: str) -> Response:
    """Return an error as plain text."""
    return plain_answer(why, status)


def error_handlers(
    show_refusal: Show = show_text, show_failure: Show = show_text
) -> Mapping[Any, Callable[[Request, Exception], Response]]:
    """Return an application's exception handlers.

    In the API, the body of an error is JSON, and for metrics and probes it is text. At
    other addresses, `show_refusal` creates the response to a refused request, and
    `show_failure` the response after an unforeseen error.
    """

    def refuse(request: Request, error: Exception) -> Response:
        match error:
            case Refusal():
                status, why, values = error.status, str(error), error.values
            case HTTPException():
                status, values = error.status_code, {}
                why = _HTTP.get(status, error.detail)
        if is_api(request):
            answer = refusal(status, why, values)
        else:
            show = show_text if _is_text(request) else show_refusal
            answer = show(request, status, why)
        answer.headers.update(getattr(error, "headers", None) or {})
        return answer

    def fail(request: Request, _: Exception) -> Response:
        if is_api(request):
            answer = refusal(500, _UNFORESEEN, {})
        else:
            show = show_text if _is_text(request) else show_failure
            answer = show(request, 500, _UNFORESEEN)
        # After an unforeseen error, the server closes the connection. Because of this
        # header, the client does not reuse the connection.
        answer.headers["Connection"] = "close"
        return answer

    return {Refusal: refuse, HTTPException: refuse, Exception: fail}


def _is_text(request: Request) -> bool:
    return request.scope["path"] in {PROBE, *WATCHING}
