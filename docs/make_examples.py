"""Puts programs of examples/ and what they print into pages.

``python -m docs.make_examples`` runs each program that a page names, and writes both
between the page's markers.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = tuple(
    ROOT / "docs" / name
    for name in ("mvds.md", "participant.md", "reliable-channel.md", "sync.md")
)
_LIMIT_S = 60
_SHOWN = re.compile(
    r"<!-- Made by \.venv/bin/python -m docs\.make_examples: (\S+) -->"
    r".*?<!-- End of the example\. -->",
    re.DOTALL,
)


def programs(page: str) -> list[str]:
    """Return the programs that a page shows, relative to the repository."""
    return _SHOWN.findall(page)


def output(program: Path) -> str:
    """Return what a program prints.

    Raises:
        RuntimeError: It fails.
    """
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(  # noqa: S603 - a program of ours
            [sys.executable, "-W", "error", str(program)],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    if done.returncode or done.stderr:
        message = f"{program.name} fails: {done.stderr}"
        raise RuntimeError(message)
    return done.stdout


def block(name: str) -> str:
    """Return a program and its output, with the markers."""
    program = ROOT / name
    code = program.read_text(encoding="utf-8")
    return (
        f"<!-- Made by .venv/bin/python -m docs.make_examples: {name} -->\n\n"
        f"```python\n{code}```\n\n```text\n{output(program)}```\n\n"
        "<!-- End of the example. -->"
    )


def made(page: str) -> str:
    """Return a page with its programs as they are now."""
    return _SHOWN.sub(lambda found: block(found[1]), page)


def main() -> None:
    """Write the pages."""
    for page in PAGES:
        page.write_text(made(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
