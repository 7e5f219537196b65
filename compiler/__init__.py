"""Compiles the core from the sources that also run interpreted.

`tree` reads the sources, `derive` writes the input of Cython, and `build` compiles it.
CONTRIBUTING, "The compiled core", explains marks and types.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

_PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def group(name: str) -> list[str]:
    """Return the requirements of a dependency group of pyproject.toml."""
    groups: dict[str, list[str]] = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))[
        "dependency-groups"
    ]
    return groups[name]
