"""What all views have in common: head, navigation, the fleet's verdict, headers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from connectors.web import words
from connectors.web.summary import summarise
from sds_core.observer.snapshot import Snapshot

VIEWS = (
    ("", "Channels"),
    ("incidents", "Incidents"),
    ("taps", "Taps"),
    ("monitor", "Monitor"),
    ("runbooks", "Runbooks"),
)
"""Path and name of each page in the navigation."""

_HERE = Path(__file__).parent.parent

_HEADERS = {
    "Cache-Control": "no-store",
    # Channel ids are text of strangers. Should one ever escape its escaping, it still
    # finds nothing that it could load or run.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Layout:
    """Makes whole pages of a view's template and what it shows."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        self._environment.globals.update(words=words)

    def page(
        self,
        request: Request,
        snapshot: Snapshot,
        template: str,
        *,
        title: str,
        status: int = 200,
        poll_s: int = 2,
        light: str = "",
        **values: Any,
    ) -> Response:
        """A view as the answer to a request.

        Args:
            request: What was asked for.
            snapshot: The figures; the head shows the verdict on them.
            template: Name of the view's template.
            title: What the view shows; the first view has none.
            status: HTTP status.
            poll_s: After how many seconds an open page asks again.
            light: Query parameter by which an open page asks for what costs little
                to find out; empty to ask for the whole page each time.
            values: Values for the template.
        """
        html = self._environment.get_template(template).render(
            root=_root(request),
            view=request.url.path.strip("/"),
            views=_navigation(snapshot),
            title=title,
            summary=summarise(snapshot),
            snapshot=snapshot,
            poll_s=poll_s,
            light=light,
            **values,
        )
        return HTMLResponse(html, status, headers=_HEADERS)

    def unread(self, request: Request, snapshot: Snapshot, title: str) -> Response:
        """A view before there are figures to show: none is not 0."""
        return self.page(request, snapshot, "unread.html", title=title)

    def problem(
        self, request: Request, snapshot: Snapshot, status: int, sentence: str
    ) -> Response:
        """A page that only says what is wrong with a request, and shows a way back."""
        return self.page(
            request,
            snapshot,
            "problem.html",
            title="Not found" if status == 404 else "Problem",
            status=status,
            sentence=sentence,
        )

    def failure(self, request: Request, sentence: str) -> Response:
        """A page that says that there is no answer, and needs nothing for that."""
        html = self._environment.get_template("failure.html").render(
            root=_root(request), sentence=sentence
        )
        return HTMLResponse(html, 500, headers=_HEADERS)

    def assets(self) -> BaseRoute:
        """Stylesheets, scripts and the icon under `/static`."""
        return Mount("/static", StaticFiles(directory=_HERE / "static"))


def other_path(prefix: str) -> str:
    """Return the path of the page with the views of a protocol other than SDS."""
    return f"views/{prefix}"


def _navigation(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Path and name of each link: `VIEWS`, and a page for each other protocol."""
    others = [
        (other_path(prefix), views.figures.names.many.capitalize())
        for prefix, views in snapshot.others.items()
    ]
    channels, *rest = VIEWS
    return [channels, *others, *rest]


def _root(request: Request) -> str:
    """The root of the site as seen from a page."""
    return "../" * (request.url.path.count("/") - 1)
