"""Every time in an answer of the API can be read by a person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from sds_core.observer.freshness import Freshness
from sds_core.times import utc_name

EARLIEST_MS, LATEST_MS = 1_000_000_000_000, 4_000_000_000_000


def bare_times(document: Any, path: str = "") -> Iterator[str]:
    """Yield the places of times without their text beside them."""
    if isinstance(document, dict):
        for name, value in document.items():
            place = f"{path}/{name}"
            if utc_name(name) in document:
                continue
            if isinstance(value, int) and EARLIEST_MS < value < LATEST_MS:
                yield place
            yield from bare_times(value, place)
    elif isinstance(document, list):
        for value in document:
            if isinstance(value, int) and EARLIEST_MS < value < LATEST_MS:
                yield path
            yield from bare_times(value, path)


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("channels", "clock_utc"),
        ("incidents", "since_utc"),
        ("incidents", "lacking_utc"),
        ("participants?channel=%2Fwaku%2F1", "heard_utc"),
        ("taps", "last_seen_utc"),
        ("taps", "holes_utc"),
        ("minutes?channel=%2Fwaku%2F1&hours=1", "begin_utc"),
    ],
)
def test_each_time_stands_as_rfc_3339_too(
    client: httpx.Client, busy: Any, path: str, known: str
) -> None:
    """In the field of the same name with the suffix _utc."""
    job = replace(busy.snapshot.job, kafka=Freshness(answered_ms=EARLIEST_MS + 1))
    busy.snapshot = replace(busy.snapshot, job=job)
    answer = client.get(f"/api/v1/{path}").raise_for_status()
    assert f'"{known}":' in answer.text
    assert list(bare_times(answer.json())) == []
