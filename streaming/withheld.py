"""Records that Kafka withholds: they follow a transaction that has not ended.

A reader of committed records gets nothing after the first record of an open
transaction, whoever wrote it. A producer that ends without a commit leaves its
transaction open until its time limit, a hanging one forever: the topic seems silent.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

WITHHELD_S = 60.0
"""Time after which a transaction counts as hanging, seconds: the usual time limit."""

_REMEDY = (
    "end the producer that has it open; kafka-transactions.sh finds a hanging one, and "
    "aborts it"
)

_log = logging.getLogger("sds-monitor")


class Withheld:
    """Counts the records that open transactions have withheld for a minute or longer.

    The log says when there are some, and when there are none any more.
    """

    def __init__(self) -> None:
        # Of partitions with an open transaction: where it begins, and since when that
        # is known, monotonic s.
        self._stable: dict[int, tuple[int, float]] = {}
        self._count = 0

    def observe(
        self, stable: Mapping[int, int], written: Mapping[int, int], now_s: float
    ) -> int:
        """Take notice of how far each partition reaches; returns the count.

        Args:
            stable: Offset after the last record that can be read, by partition.
            written: Offset after the last record.
            now_s: Time of a monotonic clock, seconds.
        """
        held: dict[int, int] = {}
        for partition, offset in stable.items():
            records = written.get(partition, offset) - offset
            before, since_s = self._stable.pop(partition, (offset, now_s))
            if records <= 0:
                continue
            if before != offset:
                since_s = now_s
            self._stable[partition] = offset, since_s
            if now_s - since_s >= WITHHELD_S:
                held[partition] = records
        count = sum(held.values())
        if count and not self._count:
            _log.warning(
                "%s records of partitions %s cannot be read: a transaction before "
                "them has been open for more than %.0f s; %s",
                f"{count:,}",
                ", ".join(map(str, sorted(held))),
                WITHHELD_S,
                _REMEDY,
            )
        elif self._count and not count:
            _log.info("all records can be read again: no transaction is open")
        self._count = count
        return count
