"""Compiles the core from the sources that also run interpreted.

`tree` reads the sources, `derive` writes the input of Cython, and `build` compiles it.
CONTRIBUTING, "The compiled core", explains marks and types.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def group(name: str) -> list[str]:
    """Return the requirements of a dependency group of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requirements: list[str] = project["dependency-groups"][name]
    return requirements
