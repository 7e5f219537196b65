"""Ledgers for tests."""

from __future__ import annotations

from pathlib import Path

from streaming.board import Board
from streaming.ledger.ledger import Ledger


def ledger_in(directory: Path, first_sequence: int = 1) -> Ledger:
    """The ledger in a directory; a new one numbers the rows of its outbox from here."""
    ledger = Ledger(directory / "ledger.sqlite")
    with ledger.transaction() as connection:
        connection.execute(
            "INSERT INTO sqlite_sequence SELECT 'outbox', ? WHERE NOT EXISTS "
            "(SELECT 1 FROM sqlite_sequence WHERE name = 'outbox')",
            (first_sequence - 1,),
        )
    return ledger


def show(board: Board, packed: dict[str, bytes], *rest: object, **more: object) -> None:
    """Publish packed totals; see `Board.following`."""
    board.publish(board.following(board.read(packed), *rest, **more))  # type: ignore[arg-type]
