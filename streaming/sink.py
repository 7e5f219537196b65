"""Where the rows of the stateful operator go: the board, and what leaves but once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from pyspark.sql import DataFrame, Row

from connectors.kafka.dead_letter import DeadLetterWriter
from sds_core.observer.acknowledgements import DefiniteAcknowledgement
from sds_core.observer.dead_letter_view import DeadLetter
from streaming.board import Board
from streaming.details import DetailStore
from streaming.keys import KeyKind, split_key
from streaming.labels import LabelLedger


class Sink:
    """Takes each batch's output; doing so twice changes nothing.

    Args:
        board: Gets the totals.
        labels: Gets the channels.
        dead_letters: Gets the undecodable records.
        details: Gets definite acknowledgements; None without ``--report-detail``.
    """

    def __init__(
        self,
        board: Board,
        labels: LabelLedger,
        dead_letters: DeadLetterWriter,
        details: DetailStore | None,
    ) -> None:
        self._board = board
        self._labels = labels
        self._dead_letters = dead_letters
        self._details = details

    def __call__(self, output: DataFrame, batch_id: int) -> None:
        """Spark's ``foreachBatch`` function."""
        # One action over the whole output: Spark fails a batch half consumed.
        self.take(output.collect())

    def take(self, rows: Sequence[Row]) -> None:
        """Write what leaves once, then show the totals."""
        letters: list[DeadLetter] = []
        acknowledgements: dict[str, list[DefiniteAcknowledgement]] = {}
        for row in rows:
            kind, name = split_key(row.key)
            if kind is KeyKind.DEAD_LETTERS:
                letters += msgspec.msgpack.decode(row.details, type=list[DeadLetter])
            elif kind is KeyKind.CHANNEL and self._details is not None:
                acknowledgements[name] = msgspec.msgpack.decode(
                    row.details, type=list[DefiniteAcknowledgement]
                )
        if letters:
            self._dead_letters.write(letters)
        if self._details is not None:
            self._details.put(acknowledgements)
        self.show({row.key: bytes(row.totals) for row in rows})

    def show(self, packed: dict[str, bytes]) -> None:
        """Put packed totals, by key, on the board."""
        names = map(split_key, packed)
        self._labels.admit(sorted(n for kind, n in names if kind is KeyKind.CHANNEL))
        self._board.set_totals(packed, self._labels.labels)
