"""Simulated channels as a history in Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from connectors.history.layout import LOCK
from connectors.history.parquet import ParquetHistory
from connectors.history.schema import CHANNEL_MINUTES, HistoryTable


def store(
    directory: Path,
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    table: HistoryTable = CHANNEL_MINUTES,
) -> Path:
    """Write rows by channel, with null for all other fields; return the directory."""
    nothing: dict[str, Any] = {
        field.name: {} if pa.types.is_map(field.type) else None
        for field in table.schema
    }
    label = table.key[0]
    ParquetHistory(directory).write(
        table,
        [
            nothing | {label: name, "told": told} | dict(row)
            for name, of_channel in rows.items()
            for told, row in enumerate(of_channel, start=1)
        ],
    )
    # A monitor that wrote there has left it.
    (directory / LOCK).touch()
    return directory
