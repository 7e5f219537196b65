"""Compiles the rules from the sources that also run as they are.

`tree` reads the sources, `derive` makes of each what Cython takes, `build` compiles.
CONTRIBUTING, "The compiled core", says what a mark or a type means.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

_PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def group(name: str) -> list[str]:
    """The requirements of a dependency group, by name.

    Raises:
        KeyError: No module has this name.
    """
    groups: dict[str, list[str]] = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))[
        "dependency-groups"
    ]
    return groups[name]
