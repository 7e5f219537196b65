"""Golden traces: one of each kind of incident, as the terminal shows it.

``python -m tests.support.trace.golden`` writes them; read the difference.
"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from sds_core.trace.trace import Trace
from streaming.cli.trace_text import TracePrinter
from tests.support.trace.causes import KINDS, run_of

DIRECTORY = Path(__file__).parents[2] / "golden" / "traces"
COLUMNS = 80


def golden_text(name: str) -> str:
    """Return the trace of the first case of a kind, 80 columns wide."""
    kind, run = KINDS[name], run_of(name)
    case = next(kind.cases(run))
    (trace,) = kind.changed(run).trace(case.channel, [case.message_id])
    return printed(trace)


def printed(trace: Trace) -> str:
    """Return what a terminal of 80 columns without colour shows of a trace."""
    file = io.StringIO()
    printer = TracePrinter(Console(file=file, width=COLUMNS, no_color=True))
    printer.print_new(trace)
    printer.print_end(trace)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def golden_file(name: str) -> Path:
    """Return the file of a kind."""
    return DIRECTORY / f"{name.replace(' ', '-')}.txt"


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    for name in KINDS:
        golden_file(name).write_text(golden_text(name), "utf-8")
