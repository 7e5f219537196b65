"""Writes the result of mutation testing to docs/rules/mutation.toml.

``python -m docs.make_mutation``, after ``mutmut export-cicd-stats``; `make mutation`
does both.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path

from docs.make_rules import MUTATION

_STATS = Path("mutants/mutmut-cicd-stats.json")


def main() -> None:
    """Write the file, with today's date."""
    stats = json.loads(_STATS.read_text())
    lines = [
        f"killed = {stats['killed']}",
        f"survived = {stats['survived'] + stats['no_tests']}",
        f"timeout = {stats['timeout']}",
        'command = "make mutation"',
        f'date = "{datetime.date.today().isoformat()}"',  # noqa: DTZ011 - a day
    ]
    MUTATION.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
