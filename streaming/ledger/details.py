"""Stores every definite acknowledgement, for ``--report-detail``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streaming.ledger.ledger import Ledger


class DetailStore:
    """A table of acknowledgements, one row for each message of each view.

    A later message may have the id of a forgotten message. In a ledger of a release up
    to 1.4, the row of the later message replaces that of the earlier one.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def record(
        self, prefix: str, acknowledgements: Mapping[str, Iterable[Any]]
    ) -> None:
        """Store the acknowledgements (`Outlet.DETAILS`) of each view of one kind."""
        rows = [
            (prefix, name, one.message_id, one.t0_ms, one.latency_ms)
            for name, acknowledged in acknowledgements.items()
            for one in acknowledged
        ]
        self._ledger.write_all(
            "INSERT INTO acknowledgements VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET t0_ms = excluded.t0_ms, "
            "latency_ms = excluded.latency_ms",
            rows,
        )

    def forget(self, prefix: str, name: str) -> None:
        """Remove all acknowledgements of a view."""
        self._ledger.write(
            "DELETE FROM acknowledgements WHERE (prefix, name) = (?, ?)", prefix, name
        )

    def latencies(self, prefix: str) -> dict[str, list[tuple[str, int]]]:
        """By view, message ids with latencies, ms, in order of the first copies."""
        found: dict[str, list[tuple[str, int]]] = {}
        for name, message_id, latency_ms in self._ledger.rows(
            "SELECT name, message_id, latency_ms FROM acknowledgements "
            "WHERE prefix = ? ORDER BY name, t0_ms, message_id",
            prefix,
        ):
            found.setdefault(name, []).append((message_id, latency_ms))
        return found
