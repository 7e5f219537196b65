"""`/runbooks`: what to do about each alert, rendered from Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources.abc import Traversable
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.prometheus.firing import SEVERITIES
from connectors.web.alert_words import held_words
from connectors.web.pages.layout import Layout
from connectors.web.sources import Sources

_POLL_S = 10
_LISTED_HELD = 200
_ALERT = re.compile("[A-Za-z0-9]+")
_SIBLING = re.compile(r"(?:\./)?([A-Za-z0-9]+)\.md(#.*)?")
# The second line of each runbook.
_SEVERITY = re.compile(r"^\*\*Severity:\*\* ([a-z, ]+)\. (.+)$", re.MULTILINE)
_ABSOLUTE = re.compile(r"https?://|#")


class _Entry(NamedTuple):
    """A runbook in the list; its severities are the gravest first."""

    alert: str
    severities: str
    meaning: str


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """The list of runbooks, and each by the name of its alert."""
    markdown = (
        MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    )

    # Synchronous, so Starlette runs them in its thread pool: they read files.
    def listed(request: Request) -> Response:
        """All runbooks, those of the gravest alerts first."""
        snapshot = sources.current()
        return layout.page(
            request,
            snapshot,
            "runbooks.html",
            held=held_words(snapshot, snapshot.views.values(), most=_LISTED_HELD),
            title="Runbooks",
            poll_s=_POLL_S,
            runbooks=_entries(sources.runbooks),
        )

    def one(request: Request) -> Response:
        """The runbook of one alert."""
        alert = request.path_params["alert"]
        if alert not in _alerts(sources.runbooks):
            return layout.problem(
                request, sources.current(), 404, "There is no runbook of this name."
            )
        text = (sources.runbooks / f"{alert}.md").read_text(encoding="utf-8")
        tokens = markdown.parse(text)
        _mend_links(tokens)
        # Raw HTML in Markdown is escaped.
        html = markdown.renderer.render(tokens, markdown.options, {})
        return layout.page(
            request,
            sources.current(),
            "runbook.html",
            title=alert,
            poll_s=_POLL_S,
            html=Markup(html),  # noqa: S704
        )

    return [Route("/runbooks", listed), Route("/runbooks/{alert}", one)]


def _alerts(runbooks: Traversable) -> list[str]:
    if not runbooks.is_dir():
        return []
    names = (file.name for file in runbooks.iterdir() if file.name.endswith(".md"))
    stems = (name.removesuffix(".md") for name in names)
    return sorted(stem for stem in stems if _ALERT.fullmatch(stem))


def _entries(runbooks: Traversable) -> list[_Entry]:
    entries = [_entry(runbooks, alert) for alert in _alerts(runbooks)]
    return sorted(entries, key=lambda one: (_rank(one.severities), one.alert))


def _rank(severities: str) -> int:
    worst = severities.partition(",")[0]
    return SEVERITIES.index(worst) if worst in SEVERITIES else len(SEVERITIES)


def _entry(runbooks: Traversable, alert: str) -> _Entry:
    text = (runbooks / f"{alert}.md").read_text(encoding="utf-8")
    found = _SEVERITY.search(text)
    if found is None:
        return _Entry(alert, "", "")
    return _Entry(alert, *found.groups())


def _mend_links(tokens: Iterable[Token]) -> None:
    """Change links to runbooks into page addresses; remove other relative links.

    The server does not have the rest of the documentation.
    """
    for token in tokens:
        _mend_links(token.children or ())
        if token.type != "link_open":
            continue
        target = str(token.attrs.get("href", ""))
        sibling = _SIBLING.fullmatch(target)
        if sibling:
            token.attrs["href"] = sibling[1] + (sibling[2] or "")
        elif not _ABSOLUTE.match(target):
            del token.attrs["href"]
            token.attrs["title"] = target
