"""Rows of a history for tests."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from connectors.history.schema import (
    NumberedIncident,
    NumberedMinute,
    Row,
    incident_row,
    minute_row,
)
from sds_core.observer.histogram import Histogram
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.sds.totals import ChannelTotals

DAY_MS = 86_400_000
MONDAY_MS = 1_786_320_000_000
"""2026-08-10 00:00 UTC."""
TUESDAY_MS = MONDAY_MS + DAY_MS


def lost(message_id: str, found_ms: int = MONDAY_MS, **known: Any) -> ChannelIncident:
    """Return a lost message of channel town, named 300 s before it was found."""
    incident = Incident(
        IncidentKind.LOST, message_id, "alice", found_ms - 300_000, found_ms, **known
    )
    return ChannelIncident("town", incident, tap_hole=False)


def incident_rows(*found: ChannelIncident, first: int = 1) -> list[Row]:
    """Return rows of incidents with increasing sequence numbers."""
    return [
        incident_row(NumberedIncident(n, one)) for n, one in enumerate(found, first)
    ]


def numbered_totals() -> ChannelTotals:
    """Return totals in which every number is different."""
    totals = ChannelTotals(
        frames={"content.spec": 1_001, "sync.nim": 1_002, "ephemeral.spec": 1_003}
    )
    for number, field in enumerate(msgspec.structs.fields(ChannelTotals), start=1):
        if field.type is int:
            setattr(totals, field.name, number)
        elif field.type is Histogram:
            setattr(totals, field.name, Histogram([number] * 13, sum_ms=number))
    return totals


def minute(minute_ms: int, told: int = 1, **figures: Any) -> Row:
    """Return the row of a minute of channel town."""
    return minute_row(NumberedMinute(told, "town", minute_ms, ChannelTotals(**figures)))


def description(field: pa.Field) -> str:
    """Return the description of a field of a table."""
    return str(field.metadata[b"description"].decode())
