"""Selects the columns of a view's history that plans need, and evaluates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sds_core.observer.figure_table import ColumnType, FigureTable
from sds_core.planning.hours import Floats, Hours

EPOCH = "epoch_messages_max"
FILTER = ("bloom_bits_set", "bloom_bits", "bloom_hashes")
"""Columns about the fullest filter: its numbers of 1 bits, bits, and hash functions."""

_PART = "bytes_"
_FRAMES = "frames_"
_RECORDS = "records_"
_REPEATED = "retransmissions_"
_RETRIES = "rebroadcasts_retry"
_RESPONSES = "repair_bytes_response"
DELIVERIES = tuple(
    f"deliveries_{outcome}"
    for outcome in ("first_pass", "recovered", "lost", "retracted")
)
ACK, RECOVERY = "ack_latency_ms_definite", "delivery_recovery_ms"
"""Prefixes of columns with durations.

Each prefix has two columns: the number of durations, and the sum of the durations, ms.
"""
PARTICIPANTS = "participants_lately"
_SUMMED = ("_count", "_sum")
_SINGLE = (
    "messages", "replicas", _RETRIES, _RESPONSES, *DELIVERIES,
    *(name + end for name in (ACK, RECOVERY) for end in _SUMMED),
)  # fmt: skip


class Measures(NamedTuple):
    """Names of the columns of a history that plans need.

    Attributes:
        parts: For each part of a frame, the column that counts the part's bytes.
        counters: Columns that only increase, including the columns of `parts`.
        gauges: Columns that can increase and decrease.
    """

    parts: Mapping[str, str]
    counters: tuple[str, ...]
    gauges: tuple[str, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of all columns."""
        return self.counters + self.gauges


def measures_of(table: FigureTable[Any]) -> Measures:
    """Return the columns that plans for a kind of view need."""
    names = [one.name for one in table.columns if one.type is ColumnType.INTEGER]
    headings = {
        table.column_of(one): one.heading.lower() for one in table.figures if one.report
    }
    parts = {
        headings.get(name) or name.removeprefix(_PART): name
        for name in names
        if name.startswith(_PART)
    }
    beginnings = (_PART, _FRAMES, _RECORDS, _REPEATED)
    counters = [n for n in names if n.startswith(beginnings) or n in _SINGLE]
    gauges = [n for n in names if n in (EPOCH, PARTICIPANTS, *FILTER)]
    return Measures(parts, tuple(counters), tuple(gauges))


def frames(hours: Hours) -> Floats | None:
    """Return the number of frames in each hour; None if no column counts frames."""
    columns = [one for name, one in hours.grown.items() if name.startswith(_FRAMES)]
    return sum(columns[1:], start=columns[0]) if columns else None


def bytes_sent(hours: Hours) -> Floats:
    """Return the total bytes sent in each hour."""
    columns = [one for name, one in hours.grown.items() if name.startswith(_PART)]
    return sum(columns[1:], start=columns[0])


def bytes_repeated(hours: Hours) -> Floats:
    """Return the number of retransmitted bytes in each hour.

    For responses to repair requests, the history has the bytes. For all other
    retransmitted frames and records, the history has only their number. Their length is
    assumed to be the mean length in the hour.
    """
    grown = hours.grown
    found = grown.get(_RESPONSES, 0.0) + 0.0 * bytes_sent(hours)
    sent = frames(hours)
    if sent is not None and _RETRIES in grown:
        found += _ratio(bytes_sent(hours) * grown[_RETRIES], sent)
    for name, repeated in grown.items():
        one = name.removeprefix(_REPEATED)
        if one != name and _RECORDS + one in grown and _PART + one in grown:
            found += _ratio(grown[_PART + one] * repeated, grown[_RECORDS + one])
    return found


def records(hours: Hours) -> Floats | None:
    """Return the number of Kafka records in each hour; None if no column counts frames.

    If several taps see a frame, each tap writes a record.
    """
    sent = frames(hours)
    return None if sent is None else sent + hours.grown["replicas"]


def mean_frame(hours: Hours) -> Floats | None:
    """Return the mean bytes of a frame in each hour; 0 in an hour without frames.

    The result is None if no column counts frames.
    """
    sent = frames(hours)
    return None if sent is None else _ratio(bytes_sent(hours), sent)


def _ratio(part: Floats, whole: Floats) -> Floats:
    found: Floats = part / np.maximum(whole, 1)
    return found
