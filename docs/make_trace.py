"""Writes the made parts of docs/trace.md: ``python -m docs.make_trace``.

The example is a golden trace, the table the rules of both protocols' tracers.
"""

from __future__ import annotations

from pathlib import Path

from docs.page_part import PagePart, table
from sds_core.observer.mvds.tracer import RULES as MVDS_RULES
from sds_core.observer.sds.trace_rules import RULES as SDS_RULES

PART = PagePart("trace.md", "make_trace", "the example and the conclusions")
_EXAMPLE = Path(__file__).parents[1] / "tests" / "golden" / "traces" / "blind-tap.txt"


def text() -> str:
    """Return the part, with its marks."""
    tables = []
    for protocol, rules in (("SDS", SDS_RULES), ("MVDS", MVDS_RULES)):
        rows = (
            (
                f"`{what}`",
                rule.text,
                f"`{rule.figure}`" if rule.figure else "",
                str(rule.section),
            )
            for what, rule in rules.items()
        )
        head = (f"key `what` ({protocol})", "text", "figure", "section")
        tables += [*table(head, rows), ""]
    return "\n".join(
        [
            PART.begin,
            "```text",
            _EXAMPLE.read_text("utf-8").rstrip(),
            "```",
            "",
            "The tables list all conclusions, the most severe first. The last column "
            "gives the section of [figures.md](figures.md) that defines the "
            "conclusion.",
            "",
            *tables,
            PART.end,
        ]
    )


if __name__ == "__main__":
    PART.write(text())
