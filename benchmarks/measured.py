"""The measurements that `plan size` is fitted to, as the package ships them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sds_core.planning.measured import Run

_DIRECTORY = Path(__file__).parents[1] / "streaming" / "cli" / "measured"
PERFORMANCE = _DIRECTORY / "performance.json"
SCALING = _DIRECTORY / "scaling.json"


def store(part: str, value: object) -> None:
    """Replace a part of `scaling.json`."""
    document: dict[str, Any] = msgspec.json.decode(SCALING.read_bytes())
    document[part] = value
    packed = msgspec.json.encode(document)
    SCALING.write_bytes(msgspec.json.format(packed, indent=1) + b"\n")


def runs(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Run]:
    """Return the rows of the table in docs/scaling.md, with the same digits.

    Args:
        columns: Headings of the table.
        rows: Cells.
    """
    return [_run(dict(zip(columns, cells, strict=True))) for cells in rows]


def _run(cells: Mapping[str, str]) -> Run:
    def value(name: str) -> float:
        return float(cells[name].replace(",", ""))

    return Run(
        channels=int(value("channels")),
        cores=int(value("cores")),
        state_partitions=int(value("state partitions")),
        executors=int(value("executors")),
        frames_per_s=value("frames/s"),
        jvm_us=value("JVM, us/frame"),
        python_us=value("Python, us/frame"),
        memory_mb=value("memory, MB"),
        written_kb=value("state written per 1,000 frames, kB"),
        checkpoint_mb=value("checkpoint, MB"),
    )
