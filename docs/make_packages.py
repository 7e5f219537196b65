"""Writes the drawing of the packages into docs/architecture.md.

It is made from the layers of the import contracts in pyproject.toml: it shows what
import-linter checks.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.page_part import PagePart

PART = PagePart("architecture.md", "make_packages", "the packages")
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"

Layer = tuple[str, ...]
"""Modules that do not import one another."""


def layers() -> list[list[Layer]]:
    """Return the layers of each contract, from top to bottom."""
    settings = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    return [
        [tuple(map(str.strip, layer.split("|"))) for layer in contract["layers"]]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]


def diagram(contracts: Sequence[Sequence[Layer]]) -> str:
    """Return the layers as a flow chart of Mermaid.

    A package whose inside has a contract too is a box around its layers.

    Args:
        contracts: Layers of each contract; the first one is about whole packages.
    """
    inside = {_package(rows): rows for rows in contracts[1:]}
    outermost = contracts[0]
    lines = ["flowchart TB"]
    for layer in outermost:
        for package in layer:
            if package not in inside:
                lines.append(f'  {package}["{package}"]')
                continue
            lines += [
                f"  subgraph {package}",
                *_rows(package, inside[package]),
                "  end",
            ]
    for upper, lower in itertools.pairwise(outermost):
        lines += [f"  {user} --> {used}" for user in upper for used in lower]
    return "\n".join(lines)


def _package(rows: Sequence[Layer]) -> str:
    return rows[0][0].partition(".")[0]


def _rows(package: str, rows: Sequence[Layer]) -> Iterator[str]:
    """Give a node for each layer, and the arrows between them."""
    for number, row in enumerate(rows):
        names = "<br/>".join(name.removeprefix(f"{package}.") for name in row)
        yield f'    {package}.{number}["{names}"]'
    for number in range(1, len(rows)):
        yield f"    {package}.{number - 1} --> {package}.{number}"


def block() -> str:
    """Return the drawing, with its marks."""
    return f"{PART.begin}\n```mermaid\n{diagram(layers())}\n```\n{PART.end}"


if __name__ == "__main__":
    PART.write(block())
