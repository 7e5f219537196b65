"""`/runbooks`: what to do about each alert, rendered from Markdown."""

from __future__ import annotations

import re
from importlib.resources.abc import Traversable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.prometheus.firing import SEVERITIES
from connectors.web import words
from connectors.web.alert_words import held_words
from connectors.web.naming import view_href
from connectors.web.pages.layout import Layout
from connectors.web.runbook_text import runbook_html
from connectors.web.sources import Sources

_POLL_S = 10
_LISTED_HELD = 200
_ALERT = re.compile("[A-Za-z0-9]+")
# Matches the line of a runbook with the alert's severities and meaning.
_SEVERITY = re.compile(r"^\*\*Severity:\*\* ([a-z, ]+)\. (.+)$", re.MULTILINE)


class _Entry(NamedTuple):
    alert: str
    severities: str
    meaning: str


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """Return the routes of the list of runbooks and of the runbook for an alert."""

    def listed(request: Request) -> Response:
        snapshot = sources.current()
        return layout.page(
            request,
            snapshot,
            "runbooks.html",
            held=held_words(snapshot, snapshot.views.values(), most=_LISTED_HELD),
            title="Runbooks",
            poll_s=_POLL_S,
            runbooks=sorted(
                (_entry(sources.runbooks, one) for one in _alerts(sources.runbooks)),
                key=lambda one: (_rank(one.severities), one.alert),
            ),
        )

    def one(request: Request) -> Response:
        alert = request.path_params["alert"]
        if alert not in _alerts(sources.runbooks):
            return layout.problem(
                request, sources.current(), 404, "No runbook has this name."
            )
        text = (sources.runbooks / f"{alert}.md").read_text(encoding="utf-8")
        snapshot = sources.current()
        channel = request.query_params.get("channel", "")
        return layout.page(
            request,
            snapshot,
            "runbook.html",
            title=alert,
            poll_s=_POLL_S,
            html=runbook_html(text, snapshot.observer, channel),
            channel=words.short(channel) if channel else "",
            href=next(
                (
                    view_href(views.kind, channel)
                    for views in snapshot.views.values()
                    if channel in views.totals
                ),
                "",
            ),
        )

    return [Route("/runbooks", listed), Route("/runbooks/{alert}", one)]


def _alerts(runbooks: Traversable) -> list[str]:
    if not runbooks.is_dir():
        return []
    names = (file.name for file in runbooks.iterdir() if file.name.endswith(".md"))
    stems = (name.removesuffix(".md") for name in names)
    return sorted(stem for stem in stems if _ALERT.fullmatch(stem))


def _rank(severities: str) -> int:
    # If an alert has several severities, its runbook names the highest first.
    worst = severities.partition(",")[0]
    return SEVERITIES.index(worst) if worst in SEVERITIES else len(SEVERITIES)


def _entry(runbooks: Traversable, alert: str) -> _Entry:
    text = (runbooks / f"{alert}.md").read_text(encoding="utf-8")
    found = _SEVERITY.search(text)
    if found is None:
        return _Entry(alert, "", "")
    return _Entry(alert, *found.groups())
