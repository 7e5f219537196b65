"""Counts what the documents demand: ``python -m docs.make_keywords DIRECTORY``.

Writes docs/rules/keywords.toml, with which a test compares the tables of rules. The
documents themselves are no part of the repository; DIRECTORY has them by the names in
docs/rules/.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from docs.make_rules import KEYWORDS, documents

_KEYWORD: Final = re.compile(
    r"\b(?:(?:MUST|SHALL|SHOULD)(?: NOT)?|MAY|REQUIRED|RECOMMENDED|OPTIONAL)\b"
)
_KEYWORDS: Final = 10
"""Number of the keywords above, as the sentence that lists them has all."""

_SENTENCE: Final = re.compile(r"[^.]+\.?")
_HEADING: Final = re.compile(r"(?:^|(?<=\s))#{1,6} +(?:\d+\. +)?")
_CODE: Final = re.compile(r"```(\w*)(.*?)```", re.DOTALL)
_DESCRIPTION: Final = re.compile(r'\bdescription: *"([^"]*)"')
_DATE: Final = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d$\n?", re.M)
"""Of a change of the lines below; a page that shows who changed what has them."""

_ITEM: Final = re.compile(r"^( *)(?:[*-]|\d+\.|[a-z]\.) +")
_NUMBERED: Final = re.compile(r"^ *(\d+)\. ")
_INLINE_ITEM: Final = re.compile(
    r"(?<=\s)(?=(?:[*-]|\d+\.) (?:\*\*|`)|\* [A-Za-z])|(?<=\. )(?=(?:-|\d+\.) [A-Z])"
)
"""An item in a text without line breaks.

A dash of a sentence has no mark after it, and no full stop before it.
"""

_LONG_LINE: Final = 400
"""A line of so many characters is part of a text that lost its line breaks."""


class Counted(NamedTuple):
    """What one section of a document has.

    Attributes:
        keywords: How often each keyword occurs.
        items: List items that no keyword binds: without items below them, without a
            keyword of their own or in the sentence before the list. Descriptions in
            code blocks of YAML are list items.
    """

    keywords: Counter[str]
    items: int


def counted(text: str) -> Counted:
    """Count one section's text."""
    keywords = Counter(_KEYWORD.findall(text))
    return Counted(keywords, sum(1 for _ in _unbound_items(_lines(text))))


def sections(text: str, headings: Iterable[str]) -> list[str]:
    """Return the text below each heading, up to the next heading of any depth.

    Args:
        text: A whole document, also one whose line breaks were lost, in which only the
            expected headings tell where a heading ends.
        headings: How the headings begin, in the document's order.

    Raises:
        ValueError: A heading is missing, or there are keywords below another one,
            besides the sentence that lists them all.
    """
    found = []
    last = ""
    expected = iter(headings)
    heading = next(expected, None)
    for part in _HEADING.split(_CODE.sub(_descriptions, _DATE.sub("", text))):
        if heading is not None and part.startswith(heading):
            found.append(_without_list(part.removeprefix(heading)))
            last, heading = heading, next(expected, None)
        elif _KEYWORD.search(_without_list(part)):
            message = f"there are keywords below {part[:40]!r}"
            raise ValueError(message)
    if heading is not None:
        message = f"there is no heading {heading!r} after {last!r}"
        raise ValueError(message)
    return found


def with_marks(text: str, headings: Iterable[str]) -> str:
    """Return a document with marks before its headings.

    Args:
        text: A whole document, whose headings are bare lines.
        headings: These lines.

    Raises:
        ValueError: A heading is not exactly one line.
    """
    lines = text.splitlines()
    for heading in headings:
        if lines.count(heading) != 1:
            message = f"{heading!r} is {lines.count(heading)} lines"
            raise ValueError(message)
        lines[lines.index(heading)] = f"## {heading}"
    return "\n".join(lines)


def _without_list(text: str) -> str:
    """Return a text without the sentence that lists all keywords."""
    return _SENTENCE.sub(
        lambda one: "" if len(set(_KEYWORD.findall(one[0]))) == _KEYWORDS else one[0],
        text,
    )


def _descriptions(code: re.Match[str]) -> str:
    """Return what replaces a code block: list items if it is YAML, otherwise none."""
    if code[1] != "yaml":
        return ""
    return "".join(f"- {one}\n" for one in _DESCRIPTION.findall(code[2]))


def _lines(text: str) -> list[str]:
    lost_all = "\n" not in text.strip()
    split = (
        _INLINE_ITEM.sub("\n", line) if lost_all or len(line) > _LONG_LINE else line
        for line in text.splitlines()
    )
    return [line.rstrip() for line in "\n".join(split).splitlines() if line.strip()]


def _unbound_items(lines: list[str]) -> Iterator[str]:
    """Yield the list items that `Counted.items` counts."""
    bound: dict[tuple[int, str], bool] = {}
    marks = [_mark(line) for line in lines]
    for number, (line, mark) in enumerate(zip(lines, marks, strict=True)):
        before = lines[number - 1] if number else ""
        if mark is None:
            continue
        follows = number > 0 and marks[number - 1] == mark
        if follows and before.endswith(":"):
            # Items below one of a page without indentation.
            bound[mark] |= bool(_KEYWORD.search(before))
        elif not follows and not (_is_numbered(line) and mark in bound):
            # A new list: the end of the line before it introduces it.
            bound[mark] = bool(_KEYWORD.search(before.split(". ")[-1]))
        after = marks[number + 1] if number + 1 < len(lines) else None
        has_items = after is not None and (after[0] > mark[0] or line.endswith(":"))
        if has_items or bound[mark]:
            continue
        if not _KEYWORD.search(_whole(lines[number:]) if _is_numbered(line) else line):
            yield line


def _is_numbered(line: str) -> bool:
    """Return whether an item has a number above 1, so that its list began before."""
    found = _NUMBERED.match(line)
    return found is not None and int(found[1]) > 1


def _whole(lines: list[str]) -> str:
    """Return the first item with its other lines, up to the next item."""
    rest = takewhile(lambda line: _mark(line) is None, lines[1:])
    return "\n".join([lines[0], *rest])


def _mark(line: str) -> tuple[int, str] | None:
    """Return the depth and kind of a list item; None for another line."""
    found = _ITEM.match(line)
    if found is None:
        return None
    return len(found[1]), re.sub(r"\w", "1", found[0].strip())


def main() -> None:
    """Write the file."""
    directory = Path(sys.argv[1])
    parts = [
        "# What each section of the documents has; made by `python -m "
        "docs.make_keywords DIRECTORY`.\n# sha256: of the document's file."
    ]
    for document in documents():
        raw = (directory / document.file).read_bytes()
        parts.append(
            f'[[document]]\nfile = "{document.file}"\n'
            f'sha256 = "{sha256(raw).hexdigest()}"'
        )
        names = [section.heading or section.title for section in document.sections]
        texts = sections(with_marks(raw.decode(), document.headings), names)
        for section, text in zip(document.sections, texts, strict=True):
            keywords, items = counted(text)
            counts = ", ".join(f'"{one}" = {keywords[one]}' for one in sorted(keywords))
            parts.append(
                f'[[document.section]]\ntitle = "{section.title}"\n'
                f"keywords = {{ {counts} }}\nitems = {items}".replace("{  }", "{}")
            )
    KEYWORDS.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
