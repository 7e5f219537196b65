"""Records that an open transaction withholds."""

from __future__ import annotations

import logging

import pytest

from connectors.kafka.settings import KafkaSettings
from streaming.topic_watch import WITHHELD_S, Withheld


def test_transaction_counts_once_it_has_been_open_for_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With all records after its first, in its partitions; the log has both moments."""
    caplog.set_level(logging.INFO, "sds-monitor")
    withheld = Withheld()
    begun_s = 1_000.0
    for after_s, stable, written, count in (
        (0, {0: 7, 1: 5}, {0: 7, 1: 9}, 0),
        (WITHHELD_S - 1, {0: 90, 1: 5}, {0: 90, 1: 20}, 0),
        # The time of the other partition begins with its own transaction.
        (WITHHELD_S, {0: 90, 1: 5}, {0: 93, 1: 21}, 16),
        (2 * WITHHELD_S, {0: 90, 1: 5}, {0: 94, 1: 21}, 20),
        (2 * WITHHELD_S + 1, {0: 95, 1: 5}, {0: 96, 1: 21}, 16),
        (2 * WITHHELD_S + 2, {0: 96, 1: 22}, {0: 96, 1: 22}, 0),
        (9 * WITHHELD_S, {0: 96, 1: 22}, {0: 97, 1: 22}, 0),
    ):
        assert withheld.observe(stable, written, begun_s + after_s) == count, after_s
    hanging, again = caplog.messages
    assert hanging.startswith(
        "16 records of partitions 1 cannot be read, because a transaction"
    )
    assert "kafka-transactions.sh" in hanging
    assert again == (
        "the transactions that prevented the job from reading records have ended"
    )


def test_log_names_the_topic_of_a_partition_if_there_are_several(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """If a job reads several topics, its own numbers of partitions mean nothing."""
    kafka = KafkaSettings("", "sds.eu,sds.us")
    stable = {1: 5, kafka.number_of("sds.us", 3): 5}
    withheld = Withheld(kafka.partition_name)
    for now_s in (0, WITHHELD_S):
        withheld.observe(stable, dict.fromkeys(stable, 7), now_s)
    assert caplog.messages[0].startswith(
        "4 records of partitions 1 of topic sds.eu, 3 of topic sds.us cannot be read"
    )
