"""Stores keys of views, requests to forget views, and sums over forgotten views.

For each kind whose `Kind.remains` is set, the register has:

- The keys of all views, for commands that run without Spark.
- *Requests*: numbered rows that the source adds to the next batch. The position of a
  batch contains the number of its last request, so a repeated batch processes the same
  requests.
- The *remainder*: sums over forgotten views.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from sds_core.observer import blob
from sds_core.observer.forgotten import Remainder
from sds_core.observer.kinds import AnyKind, Kinds
from streaming.ledger.ledger import Ledger

_ADD_KEY = "INSERT OR IGNORE INTO views VALUES (?)"

_REMAINDER = "SELECT views, totals, other FROM remainders WHERE prefix = ?"

_STORE_REMAINDER = """
INSERT INTO remainders VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    views = excluded.views, totals = excluded.totals, other = excluded.other
"""

_Rows = TypeVar("_Rows")


class ForgottenView(NamedTuple):
    """The last figures of a forgotten view.

    `in_other` is True if the view had no metric label of its own.
    """

    kind: AnyKind
    totals: Any
    in_other: bool


class ViewRegister:
    """The register of one checkpoint; a running job and commands can share it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def begin(self, taken: int) -> None:
        """Remove the requests that committed batches have processed.

        `taken` is the highest number of such a request.
        """
        with self._ledger.transaction():
            self._ledger.write("DELETE FROM requests WHERE number <= ?", taken)
            # New requests get numbers above `taken`. No batch would process a request
            # with a lower number.
            self._ledger.write("DELETE FROM sqlite_sequence WHERE name = 'requests'")
            self._ledger.write(
                "INSERT INTO sqlite_sequence SELECT 'requests', "
                "max(?, (SELECT coalesce(max(number), 0) FROM requests))",
                taken,
            )

    def set_keys(self, keys: Iterable[str]) -> None:
        """Replace all stored keys of views by these keys."""
        with self._ledger.transaction():
            self._ledger.write("DELETE FROM views")
            self._ledger.write_all(_ADD_KEY, [(key,) for key in keys])

    def keys(self) -> list[str]:
        """The keys of all views, in order."""
        rows = self._ledger.rows("SELECT key FROM views ORDER BY key")
        return [key for (key,) in self._checked(rows, list[tuple[str]])]

    def request(self, requests: Iterable[tuple[str, bytes]]) -> None:
        """Add requests; each has the key of a view, and `FORGET` or `REVIEW`."""
        self._ledger.write_all(
            "INSERT INTO requests (key, digest) VALUES (?, ?)", list(requests)
        )

    def newest_request(self) -> int:
        """Number of the newest request; 0 if none exists."""
        return int(self._ledger.value("SELECT max(number) FROM requests") or 0)

    def requests(self, after: int, until: int) -> list[tuple[str, bytes]]:
        """Requests with numbers in (after, until], in order."""
        rows = self._ledger.rows(
            "SELECT key, digest FROM requests WHERE number > ? AND number <= ? "
            "ORDER BY number",
            after,
            until,
        )
        return self._checked(rows, list[tuple[str, bytes]])

    def update_keys(self, new: Iterable[str], gone: Iterable[str]) -> None:
        """Add keys of new views, and remove keys of views that are gone."""
        self._ledger.write_all(_ADD_KEY, [(key,) for key in new])
        self._ledger.write_all(
            "DELETE FROM views WHERE key = ?", [(key,) for key in gone]
        )

    def add_forgotten(self, forgotten: Iterable[ForgottenView]) -> None:
        """Add to the stored sums the counts of views that a batch has forgotten.

        If a forgotten view returns, its earlier counts stay in the sums.
        """
        by_prefix: dict[str, list[ForgottenView]] = {}
        for one in forgotten:
            by_prefix.setdefault(one.kind.prefix, []).append(one)
        for prefix, some in by_prefix.items():
            kind = some[0].kind
            stored = _with(kind, self._remainder(kind), some)
            self._ledger.write(_STORE_REMAINDER, prefix, *stored)

    def remainders(self, kinds: Kinds) -> dict[str, Remainder[Any]]:
        """Sums over forgotten views, by the prefix of their kind."""
        with self._ledger.transaction():
            found = {kind.prefix: self._remainder(kind) for kind in kinds}
        return {prefix: one for prefix, one in found.items() if one is not None}

    def _remainder(self, kind: AnyKind) -> Remainder[Any] | None:
        rows = self._ledger.rows(_REMAINDER, kind.prefix)
        if not rows:
            return None
        views, totals, other = rows[0]
        with self._ledger.decoding("a remainder"):
            return Remainder(
                int(views),
                blob.unpack_totals(totals, kind.totals),
                None if other is None else blob.unpack_totals(other, kind.totals),
            )

    def _checked(self, rows: Any, type_: type[_Rows]) -> _Rows:
        try:
            return msgspec.convert(rows, type_)
        except msgspec.ValidationError as error:
            raise self._ledger.damaged(error) from error


def _with(
    kind: AnyKind, before: Remainder[Any] | None, forgotten: Sequence[ForgottenView]
) -> tuple[int, bytes, bytes | None]:
    assert kind.figures is not None  # noqa: S101 - kinds with `remains` have a table
    assert kind.remains is not None  # noqa: S101 - only their views are given
    remains = [(kind.remains(one.totals), one.in_other) for one in forgotten]
    totals = [one for one, _ in remains]
    other = [one for one, in_other in remains if in_other]
    views = len(forgotten)
    if before is not None:
        views += before.views
        totals.append(before.totals)
        if before.other is not None:
            other.append(before.other)
    return (
        views,
        blob.pack_totals(kind.figures.sum(totals)),
        blob.pack_totals(kind.figures.sum(other)) if other else None,
    )
