"""The parts that all pages share: head, navigation, overall verdict, HTTP headers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from connectors.prometheus.firing import FiringAlerts
from connectors.web import words
from connectors.web.alert_words import firing_words
from connectors.web.naming import path_of
from connectors.web.summary import summarise
from sds_core.observer.snapshot import Snapshot
from sds_core.text import visible

_PAGES = ("Incidents", "Planning", "Taps", "Monitor", "Runbooks")

_HERE = Path(__file__).parent.parent

_HEADERS = {
    "Cache-Control": "no-store",
    # Channel ids are untrusted text. Even if escaping failed, these headers would keep
    # a browser from loading or running anything that this server does not serve.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

POLL_S = 2


def page_environment() -> Environment:
    """Return the environment of the pages' and reports' templates.

    The templates escape all values.
    """
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals["words"] = words
    return environment


class Layout:
    """Creates pages from templates and values. A page's head names firing alerts."""

    def __init__(self, firing: Callable[[], FiringAlerts]) -> None:
        self._firing = firing
        self._environment = page_environment()

    def page(
        self,
        request: Request,
        snapshot: Snapshot,
        template: str,
        *,
        title: str,
        status: int = 200,
        poll_s: int = POLL_S,
        light: str = "",
        **values: Any,
    ) -> Response:
        """Return a page as the response to a request.

        `title` is empty for the first page. An open page requests an update every
        `poll_s` seconds. If `light` is given, most updates add this query parameter to
        the address, so that the server computes only the parts of the page that take
        little time. The template receives `values`.
        """
        html = self._environment.get_template(template).render(
            root=_root(request),
            view=request.url.path.strip("/"),
            views=_navigation(snapshot),
            title=title,
            summary=summarise(snapshot),
            firing=firing_words(self._firing()),
            snapshot=snapshot,
            poll_s=poll_s,
            light=light,
            **values,
        )
        return HTMLResponse(visible(html), status, headers=_HEADERS)

    def unread(self, request: Request, snapshot: Snapshot, title: str) -> Response:
        """Return the page that is shown until the monitor has figures."""
        return self.page(request, snapshot, "unread.html", title=title)

    def problem(
        self,
        request: Request,
        snapshot: Snapshot,
        status: int,
        sentence: str,
        poll_s: int = POLL_S,
    ) -> Response:
        """Return a page that only explains a failed request and has links back."""
        return self.page(
            request,
            snapshot,
            "problem.html",
            title="Not found" if status == 404 else "Problem",
            status=status,
            poll_s=poll_s,
            sentence=sentence,
        )

    def failure(self, request: Request, sentence: str) -> Response:
        """Return a page for an unexpected error; it does not need a snapshot."""
        html = self._environment.get_template("failure.html").render(
            root=_root(request), sentence=sentence
        )
        return HTMLResponse(visible(html), 500, headers=_HEADERS)

    def assets(self) -> BaseRoute:
        """Return the route of stylesheets, scripts and the icon."""
        return Mount("/static", StaticFiles(directory=_HERE / "static"))


def _navigation(snapshot: Snapshot) -> list[tuple[str, str]]:
    lists = [
        (path_of(views.kind), views.kind.names.many.capitalize())
        for views in snapshot.views.values()
    ]
    return [*lists, *((name.lower(), name) for name in _PAGES)]


def _root(request: Request) -> str:
    return "../" * (request.url.path.count("/") - 1)
