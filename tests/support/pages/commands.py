"""The shell commands of all pages, and who runs each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from docs.make_commands import table
from tests.support.deployment import ROOT

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "dashboards/**/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
    if path.name not in ("CHANGELOG.md", "rules.md")
)
_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


class PageCommand(NamedTuple):
    """A command of a page.

    Attributes:
        page: Path of the page below the repository.
        text: The command, in one line; a script with all its lines.
    """

    page: str
    text: str


def page_commands() -> Iterator[PageCommand]:
    """Yield the commands of each page, in order."""
    for path in PAGES:
        page = str(path.relative_to(ROOT))
        for block in _BLOCK.findall(path.read_text(encoding="utf-8")):
            for text in _commands(block):
                yield PageCommand(page, text)


def _commands(block: str) -> list[str]:
    lines = re.sub(r"\\\n\s*", "", block).splitlines()
    if block.startswith("#!") or "$CHECKPOINT" in block:
        return ["\n".join(lines)]
    commands = [re.sub(r"(^|\s+)#.*", "", line).strip() for line in lines]
    return [command for command in commands if command]


def run_here() -> dict[str, list[str]]:
    """Return the commands that docs/commands.toml does not name, by page.

    Several runbooks have the same command; only the first one keeps it.
    """
    named = (*table("never_run"), *table("elsewhere"))
    found: dict[str, list[str]] = {}
    of_runbooks: set[str] = set()
    for page, text in page_commands():
        if text.startswith(named) or text in of_runbooks:
            continue
        if page.startswith("dashboards/runbooks/"):
            of_runbooks.add(text)
        found.setdefault(page, []).append(text)
    return found
