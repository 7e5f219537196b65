"""The status page: rendered once by the server, then kept up to date by its script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from connectors.web.api import fleet_object
from connectors.web.status import FACTS, groups
from connectors.web.words import NOTHING
from sds_core.observer.snapshot import Snapshot

SHOWN_CHANNELS = 200
"""Rows at most: what a browser updates every two seconds without being noticed, and
the default budget of labels."""

_HERE = Path(__file__).parent

_HEADERS = {
    "Cache-Control": "no-store",
    # Channel ids are text of strangers. Should one ever escape its escaping, it still
    # finds nothing that it could load or run.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def routes(current: Callable[[], Snapshot]) -> list[BaseRoute]:
    """The page at `/` and its assets under `/static`.

    Args:
        current: Gives the snapshot to show.
    """
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("status.html")

    async def page(request: Request) -> Response:
        """The first state of the page, whole without any script."""
        fleet = fleet_object(current(), limit=SHOWN_CHANNELS, text=True)
        html = template.render(
            fleet=fleet,
            facts=FACTS,
            groups=groups(),
            nil=("0", NOTHING),
            shown_channels=SHOWN_CHANNELS,
        )
        return HTMLResponse(html, headers=_HEADERS)

    return [
        Route("/", page),
        Mount("/static", StaticFiles(directory=_HERE / "static")),
    ]
