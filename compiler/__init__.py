"""Compiles the core. Python can also interpret the core's sources.

`tree` reads the sources, `derive` writes Cython's input, and `build` compiles the
input. Section "The compiled core" of CONTRIBUTING.md explains the decorators and types
in the sources.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def group(name: str) -> list[str]:
    """Return the requirements of a dependency group in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requirements: list[str] = project["dependency-groups"][name]
    return requirements
