"""Draws sentences of the product at random: ``tools/sample-sentences --seed 35``.

Someone who does not know the project reads them and counts those that must be read
twice. Each kind of text has the same weight, whatever its size.
"""

from __future__ import annotations

import ast
import io
import random
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

_END = re.compile(r"(?<=[.?!])[)*\"'`]*\s+(?=[\"'`(*\[]*[A-Z{`])")
_LOG_METHODS = {"debug", "info", "warning", "error", "critical", "exception"}
_DRAWN = re.compile(r"[├└│▶─]|\S {3,}\S.* {3,}\S")
_LEAST_WORDS = 4
_WORD = re.compile(r"(?<![^\s(\"'`*])[A-Za-z][a-z'-]+(?![^\s).,:;?!\"'`*])")


class Sentence(NamedTuple):
    """A sentence and the place where it begins."""

    path: str
    line: int
    text: str


Block = tuple[int, str]
"""Number of the first line, and lines that belong together."""


def sentences(path: str, blocks: Iterator[Block]) -> Iterator[Sentence]:
    """Yield the sentences of blocks that have at least four words."""
    for line, block in blocks:
        if _DRAWN.search(block):
            continue
        start = 0
        for end in (*(match.end() for match in _END.finditer(block)), len(block)):
            text = " ".join(block[start:end].split())
            if len(_WORD.findall(text)) >= _LEAST_WORDS:
                yield Sentence(path, line + block[:start].count("\n"), text)
            start = end


def markdown_blocks(text: str) -> Iterator[Block]:
    """Yield each line and each cell of a table; code and headings are skipped."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif is_code or re.match(r"\s*(#|<|!\[|$)", line):
            continue
        elif line.startswith("|"):
            yield from ((number, cell) for cell in line.split("|"))
        else:
            yield number, re.sub(r"^\s*([-*>]|\d+\.)\s+", "", line)


def html_blocks(text: str) -> Iterator[Block]:
    """Yield the text between tags of a template; each expression becomes ``{}``.

    The branches of a condition are texts of their own.
    """
    text = re.sub(r"{% el(se|if).*?%}", "<else>", text)
    text = re.sub(r"{[%#].*?[%#]}|<(style|script).*?</\1>", _newlines, text, flags=re.S)
    text = re.sub(r"{{.*?}}", lambda match: "{}" + _newlines(match), text, flags=re.S)
    inline = re.sub(r"</?(a|b|code|em|strong|span|abbr)\b[^>]*>", _newlines, text)
    line = 1
    for part in re.split(r"(<[^>]*>)", inline):
        if not part.startswith("<"):
            stripped = part.lstrip()
            yield line + part[: len(part) - len(stripped)].count("\n"), stripped
        line += part.count("\n")


def _newlines(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def comment_blocks(text: str) -> Iterator[Block]:
    """Yield the comments of a module's source; those of the linters are skipped."""
    last, begin, lines = 0, 0, [""]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or re.match(r"#(!|.*\bnoqa\b)", token.string):
            continue
        is_alone = token.line.lstrip().startswith("#")
        if token.start[0] != last + 1 or not is_alone:
            yield begin, "\n".join(lines)
            begin, lines = token.start[0], []
        last = token.start[0]
        lines.append(token.string.lstrip("#: "))
    yield begin, "\n".join(lines)


def docstring_blocks(text: str) -> Iterator[Block]:
    """Yield the paragraphs and entries of all docstrings of a module's source."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield from _paragraphs(node.value)


def _paragraphs(constant: ast.Constant) -> Iterator[Block]:
    """Yield what an empty line separates, and each entry of a section or list."""
    entry_indent = -1  # Of the entries of the section; -1 outside of sections.
    begin, block = 0, ""
    for number, line in enumerate([*str(constant.value).splitlines(), ""]):
        indent = len(line) - len(line.lstrip())
        heading = re.fullmatch(r"\s*(Args|Attributes|Returns|Yields|Raises):", line)
        is_item = re.match(r"\s*(-|\d+\.) ", line) is not None
        is_entry = is_item or indent == entry_indent
        if heading or is_entry or not line.strip():
            yield constant.lineno + begin, block
            begin, block = number, ""
        if heading:
            # What follows these two is text, not a list of names.
            is_text = heading[1] in ("Returns", "Yields")
            entry_indent = -1 if is_text else indent + 4
        elif is_entry:
            block = re.sub(r"^\s*([\w*., `]+:|-|\d+\.)\s", "", line) + "\n"
        elif line.strip():
            begin = begin if block else number
            block += line + "\n"


def string_blocks(
    text: str, contains: Callable[[ast.AST], bool] = lambda node: True
) -> Iterator[Block]:
    """Yield the strings of a source; an expression in an f-string becomes ``{}``.

    Args:
        text: Source of the module.
        contains: Which nodes to search. By default, strings anywhere are yielded.
    """
    seen: set[int] = set()
    for node in filter(contains, ast.walk(ast.parse(text))):
        for inner in ast.walk(node):
            if id(inner) in seen:
                continue
            if isinstance(inner, ast.JoinedStr):
                seen.update(map(id, ast.walk(inner)))
                parts = [getattr(part, "value", "") for part in inner.values]
                texts = [part if isinstance(part, str) else "{}" for part in parts]
                yield inner.lineno, "".join(texts)
            elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield inner.lineno, inner.value
            elif isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
                # A docstring.
                seen.add(id(inner.value))
            seen.add(id(inner))


def _is_help(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg in {"help", "epilog"}


def error_blocks(text: str) -> Iterator[Block]:
    """Yield the words of errors and of lines of the log."""
    raised = {
        inner.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Raise)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name)
    }

    def contains(node: ast.AST) -> bool:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in _LOG_METHODS
        if isinstance(node, ast.ClassDef):
            return any("Error" in ast.unparse(base) for base in node.bases)
        if isinstance(node, ast.Assign):
            return any(ast.unparse(target) in raised for target in node.targets)
        return isinstance(node, ast.Raise)

    return string_blocks(text, contains)


def _help_blocks(text: str) -> Iterator[Block]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and any(
            re.search(r"\.(command|group)\b", ast.unparse(decorator))
            for decorator in node.decorator_list
        ):
            yield from docstring_blocks(ast.unparse(node.body[0]))
    yield from string_blocks(text, _is_help)


def _page_words(text: str) -> Iterator[Block]:
    return (block for block in string_blocks(text) if _is_prose(block[1]))


def _is_prose(text: str) -> bool:
    """Whether a string is words for a reader, and no query, path or pattern."""
    return re.search(r"[\[\]\\=<>]|\w\(|by \(", text) is None


KINDS: dict[str, list[tuple[str, Callable[[str], Iterator[Block]]]]] = {
    "document": [("*.md", markdown_blocks), ("docs/*.md", markdown_blocks)],
    "runbook": [("dashboards/runbooks/*.md", markdown_blocks)],
    "help": [("streaming/cli/*.py", _help_blocks)],
    "page": [
        ("connectors/web/**/*.html", html_blocks),
        ("connectors/web/**/*.py", _page_words),
    ],
    "alert": [("dashboards/**/*.py", _page_words)],
    "error": [
        (f"{package}/**/*.py", error_blocks)
        for package in ("sds_core", "connectors", "streaming")
    ],
    "docstring": [
        (f"{package}/**/*.py", find_blocks)
        for find_blocks in (docstring_blocks, comment_blocks)
        for package in ("sds_core", "connectors", "streaming", "dashboards", "compiler")
    ],
}
"""Kind of text -> patterns of its files, and what finds the texts in them."""


def read_kind(root: Path, kind: str) -> list[Sentence]:
    """Return all sentences of a kind, in the order of their places."""
    return [
        sentence
        for pattern, find_blocks in KINDS[kind]
        for path in sorted(root.glob(pattern))
        if path.name not in ("CHANGELOG.md", "rules.md")  # They quote.
        for sentence in sentences(
            str(path.relative_to(root)), find_blocks(path.read_text(encoding="utf-8"))
        )
    ]


def draw(root: Path, count: int, seed: int) -> Iterator[tuple[str, Sentence]]:
    """Yield sentences with their kinds, of each kind the same number within one."""
    random_ = random.Random(seed)  # noqa: S311 - no secret
    for number, kind in enumerate(KINDS):
        share = (count + number) // len(KINDS)
        drawn = random_.sample(read_kind(root, kind), share)
        yield from ((kind, sentence) for sentence in drawn)


@click.command()
@click.option("--seed", default=35, show_default=True, help="Seed of the draw.")
@click.option("--count", default=150, show_default=True, help="Number of sentences.")
def main(seed: int, count: int) -> None:
    """Draw sentences that users and contributors read, of each kind equally many."""
    for kind, (path, line, text) in draw(Path(__file__).parents[1], count, seed):
        click.echo(f"{kind:9} {path}:{line}: {text}")


if __name__ == "__main__":
    main()
