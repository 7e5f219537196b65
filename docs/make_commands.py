"""Writes into docs/faq.md which commands of the pages were never run, and why.

``python -m docs.make_commands`` reads docs/commands.toml.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from docs.page_part import PagePart

PART = PagePart("faq.md", "make_commands", "the commands that were never run")


def table(name: str) -> dict[str, str]:
    """Return a table of docs/commands.toml: first words of commands -> its value."""
    text = Path(__file__).with_name("commands.toml").read_text(encoding="utf-8")
    found: dict[str, str] = tomllib.loads(text)[name]
    return found


def part() -> str:
    """Return the part of the page, with its marks."""
    by_need: dict[str, list[str]] = {}
    for first_words, need in table("never_run").items():
        by_need.setdefault(need, []).append(f"`{first_words.strip()}`")
    lines = [f"- {', '.join(words)}: {need}" for need, words in by_need.items()]
    return "\n".join([PART.begin, *sorted(lines), PART.end])


if __name__ == "__main__":
    PART.write(part())
