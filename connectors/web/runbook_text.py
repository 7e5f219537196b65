"""Renders runbooks as HTML; inserts a channel's id and the configured durations."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from connectors.web import words
from connectors.web.naming import needs_key, runbook_href
from sds_core.observer.settings import ObserverSettings

CHANNEL = "my-channel"
"""The channel that runbooks use as an example in commands and queries."""

DURATION = re.compile(r"(\d+ (?:s|min)) \(`(\w+_ms)`\)")
"""Matches a default duration and its setting's name, like ``30 s (`warm_up_ms`)``."""

_SIBLING = re.compile(r"(?:\./)?([A-Za-z0-9]+)\.md(#.*)?")
_ABSOLUTE = re.compile(r"https?://|#")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def runbook_html(text: str, settings: ObserverSettings, channel: str = "") -> Markup:
    """Render a runbook as HTML; escape raw HTML in its text.

    The values in `settings` replace the default durations. In commands and queries, the
    channel's id, quoted as necessary, replaces `CHANNEL`. Links to other runbooks get
    the id as a parameter. If the id is empty, not printable, or needs a key, `CHANNEL`
    stays, and links get no parameter.
    """
    tokens = _MARKDOWN.parse(
        DURATION.sub(
            lambda match: (
                f"{words.duration(getattr(settings, match[2]))} (`{match[2]}`)"
            ),
            text,
        )
    )
    if channel.isprintable() and not needs_key(channel):
        _name_channel(tokens, channel or CHANNEL)
        _mend_links(tokens, channel)
    else:
        _mend_links(tokens, "")
    # The renderer escapes all text, so the result is safe HTML.
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))  # noqa: S704


def _name_channel(tokens: Iterable[Token], channel: str) -> None:
    quoted = {
        "sh": shlex.quote(channel),
        "promql": json.dumps(channel, ensure_ascii=False),
    }
    examples = {"sh": CHANNEL, "promql": f'"{CHANNEL}"'}
    for token in tokens:
        if token.type == "fence" and token.info in quoted:
            example, name = examples[token.info], quoted[token.info]
            token.content = token.content.replace(example, name)


def _mend_links(tokens: Iterable[Token], channel: str) -> None:
    for token in tokens:
        _mend_links(token.children or (), channel)
        if token.type != "link_open":
            continue
        target = str(token.attrs.get("href", ""))
        sibling = _SIBLING.fullmatch(target)
        if sibling:
            address = runbook_href(sibling[1], channel).removeprefix("runbooks/")
            token.attrs["href"] = address + (sibling[2] or "")
        elif not _ABSOLUTE.match(target):
            # The server has no documents except runbooks, so remove the link.
            del token.attrs["href"]
            token.attrs["title"] = target
