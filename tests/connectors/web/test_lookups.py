"""Queries that may read files run a few at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from connectors.web.lookups import Lookups
from connectors.web.refusals import HistoryBusy
from connectors.web.sources import Sources
from sds_core.observer.incidents import ChannelIncident, IncidentQuery
from sds_core.observer.snapshot import Snapshot
from tests.support.web.stored import stored

QUERY = IncidentQuery()


def test_third_simultaneous_query_waits_and_is_then_refused(tmp_path: Path) -> None:
    """So many open pages do not use all memory; a refused one may retry."""
    under_way = threading.Semaphore(0)
    end = threading.Event()

    def find(query: IncidentQuery) -> Sequence[ChannelIncident]:
        under_way.release()
        assert end.wait(60)
        return []

    sources = Sources(Snapshot, stored(find_incidents=find), tmp_path)
    lookups = Lookups(sources, patience_s=0.05)
    threads = [
        threading.Thread(target=lookups.incidents, args=["sds", QUERY]) for _ in "12"
    ]
    for thread in threads:
        thread.start()
    try:
        assert all(under_way.acquire(timeout=30) for _ in threads)
        with pytest.raises(HistoryBusy):
            lookups.incidents("sds", QUERY)
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert lookups.incidents("sds", QUERY) == []
