"""The words of the help texts, of the pages and of the runbooks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from streaming.cli import group

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))
    # These quote: former names, and the texts of the documents.
    if page.name not in ("CHANGELOG.md", "rules.md")
)

AVOIDED = {
    r"delivery budget": "error budget",
    r"how far behind": "lag",
    # The error of a replaced topic is known by "made anew".
    r"(?<!made )anew": "again, recreated, restarts",
    r"go(es)? on|going on": "continues, resumes",
    r"given up|gives? up": "drops, discards",
    r"processor time": "CPU time",
    r"packed": "compressed, encoded",
    r"told again|told": "reported, retransmitted",
    r"from the first start": "at the first start",
    r"longest (wait|time)": "maximum",
    r"looks? whether|see whether": "verify, check that",
    r"made to hurt": "malicious, crafted",
    r"starts? again on it": "restart, resume from a checkpoint",
}
"""Pattern -> the words to use instead."""

AVOIDED_IN_HELP = AVOIDED | {
    r"most (?=kafka|bytes|dead)": "maximum",
    r"away": "unavailable, unreachable",
    r"holes?": "sequence gap, capture gap",
    r"somebody|nobody": "the worker or process that is meant",
    r"left out|leaves? out": "drops, omits",
    r"started again on": "restarted, resumed",
}

EXCEPTIONS = {
    # A help text of /metrics, which stays until a major version.
    ("docs/metrics.md", "given up|gives? up"),
}
"""Page and what it says."""


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all commands below it, by name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for inner in command.list_commands(context):
            below = command.get_command(context, inner)
            assert below is not None
            yield from commands(below, f"{name} {inner}")


def avoided(text: str, patterns: dict[str, str]) -> list[str]:
    """Return the words of a text that should be others, each with these."""
    return [
        f"{match[0]!r}: use {better}"
        for pattern, better in patterns.items()
        for match in re.finditer(rf"\b({pattern})\b", text, re.IGNORECASE)
    ]


_QUOTED = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)

HELP = dict(commands(group, "sds-monitor"))


@pytest.mark.parametrize("name", HELP)
def test_help_uses_the_words_of_the_field(name: str) -> None:
    """In the text of the command, and in those of its options."""
    command = HELP[name]
    context = click.Context(command, info_name=name)
    # An option wraps at the width of a terminal.
    text = " ".join(command.get_help(context).split())
    assert avoided(text, AVOIDED_IN_HELP) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_uses_the_words_of_the_field(page: Path) -> None:
    """Code and quoted outputs are not looked at."""
    text = _QUOTED.sub(" ", page.read_text(encoding="utf-8"))
    name = str(page.relative_to(ROOT))
    patterns = {
        pattern: better
        for pattern, better in AVOIDED.items()
        if (name, pattern) not in EXCEPTIONS
    }
    assert avoided(text, patterns) == []


def test_avoided_word_is_detected() -> None:
    """Whole words only, in any case."""
    assert avoided("It Goes on; unpacked.", AVOIDED) == [
        "'Goes on': use continues, resumes"
    ]
