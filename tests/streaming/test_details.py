"""Definite acknowledgements, stored beside the checkpoint."""

from __future__ import annotations

from pathlib import Path

from sds_core.observer.sds.acknowledgements import DefiniteAcknowledgement
from streaming.ledger.details import DetailStore
from tests.support.streaming.ledger import ledger_in


def test_acknowledgements_are_kept_by_kind_and_name(tmp_path: Path) -> None:
    """Message ids are keys as well, and rows are read in order of t0."""
    store = DetailStore(ledger_in(tmp_path))
    later = DefiniteAcknowledgement("a", t0_ms=20, latency_ms=5)
    earlier = DefiniteAcknowledgement("b", t0_ms=10, latency_ms=7)
    store.record("sds", {"town": [later, earlier]})
    store.record("sds", {"town": [later], "village": [later]})
    store.record("toy", {"town": [DefiniteAcknowledgement("a", 1, 2)]})
    again = DetailStore(ledger_in(tmp_path))
    assert again.latencies("sds") == {
        "town": [("b", 7), ("a", 5)],
        "village": [("a", 5)],
    }
    assert again.latencies("toy") == {"town": [("a", 2)]}
    store.forget("sds", "town")
    assert set(again.latencies("sds")) == {"village"}
    assert set(again.latencies("toy")) == {"town"}


def test_id_that_returns_as_a_new_message_has_two_acknowledgements(
    tmp_path: Path,
) -> None:
    """js-waku makes ids from texts, and an id is forgotten after an hour."""
    store = DetailStore(ledger_in(tmp_path))
    for one in (
        DefiniteAcknowledgement("a", t0_ms=10, latency_ms=5),
        DefiniteAcknowledgement("a", t0_ms=7_200_000, latency_ms=7),
    ):
        store.record("sds", {"town": [one]})
    assert store.latencies("sds") == {"town": [("a", 5), ("a", 7)]}
