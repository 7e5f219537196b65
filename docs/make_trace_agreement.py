"""Writes the table of docs/trace.md that compares traces with reports.

``python -m docs.make_trace_agreement [SCENARIO…]`` traces all messages of scenarios, by
default of all, and writes their rows; `flood` takes some minutes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from docs.page_part import PagePart
from tests.support.trace.agreement import SCENARIOS, Agreement, agreement

PART = PagePart("trace.md", "make_trace_agreement", "the agreement of scenarios")
_HEAD = ("| scenario | messages traced | conclusions that differ |", "|---|---|---|")
_ROW = re.compile(r"\| `(.+)` \| [0-9,]+ \| [0-9,]+ \|")


def text(results: Iterable[Agreement], before: str) -> str:
    """Return the part with new rows; those of other scenarios stay as they were.

    Args:
        results: What was compared.
        before: The part as it stands on the page.
    """
    rows = {row[1]: row[0] for row in _ROW.finditer(before)}
    rows |= {
        one.scenario: f"| `{one.scenario}` | {one.messages:,} | {len(one.differing)} |"
        for one in results
    }
    lines = [rows[name] for name in SCENARIOS if name in rows]
    return "\n".join([PART.begin, *_HEAD, *lines, "", PART.end])


def main() -> None:
    """Compare scenario after scenario; each row is on the page at once."""
    for name in sys.argv[1:] or SCENARIOS:
        PART.write(text([agreement(name)], PART.current()))


if __name__ == "__main__":
    main()
