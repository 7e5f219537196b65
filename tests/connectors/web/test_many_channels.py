"""Pages of a monitor with thousands of channels."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from connectors.web.pages.fleet import LISTED_VIEWS
from sds_core.observer.growth import Recorded, counted_values
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]


@pytest.fixture
def collections() -> Callable[[Callable[[], object]], int]:
    """Counts how often something makes the garbage collector run."""

    def count(act: Callable[[], object]) -> int:
        begun: list[str] = []

        def note(phase: str, _: Any) -> None:
            if phase == "start":
                begun.append(phase)

        gc.collect()
        gc.callbacks.append(note)
        try:
            act()
        finally:
            gc.callbacks.remove(note)
        return len(begun)

    return count


@pytest.mark.parametrize(
    "path", ["/", "/?sort=messages", "/?window=all", "/?window=all&sort=-messages"]
)
def test_channels_that_are_not_listed_make_no_garbage(
    path: str,
    client: httpx.Client,
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    collections: Callable[[Callable[[], object]], int],
) -> None:
    """Each collection after them would go through the figures of all channels."""
    one = totals(first_event_ms=1, messages=9)
    recorded = [Recorded(1, counted_values(CHANNEL_FIGURES, totals(messages=2)))]
    found = []
    for number in (LISTED_VIEWS, 30 * LISTED_VIEWS):
        names = [f"channel-{n}" for n in range(number)]
        stage.snapshot = snapshot(dict.fromkeys(names, one))
        stage.recent = {name: recorded for name in names}
        client.get(path)
        found.append(collections(lambda: client.get(path)))
    few, many = found
    assert many < few + 5
