"""Definite acknowledgements, stored beside the checkpoint."""

from __future__ import annotations

from pathlib import Path

from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from streaming.details import DetailStore


def test_replayed_batch_overwrites_its_own_rows(tmp_path: Path) -> None:
    """Rows have channel and message id as key and are read in order of t0."""
    store = DetailStore(tmp_path / "monitor" / "details.sqlite")
    later = DefiniteAcknowledgement("a", t0_ms=20, latency_ms=5)
    earlier = DefiniteAcknowledgement("b", t0_ms=10, latency_ms=7)
    store.record({"town": [later, earlier]})
    store.record({"town": [later], "village": [later]})
    again = DetailStore(tmp_path / "monitor" / "details.sqlite")
    assert again.latencies() == {
        "town": [("b", 7), ("a", 5)],
        "village": [("a", 5)],
    }
