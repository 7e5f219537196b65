"""How commands that write records to Kafka end at a signal or an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from connectors.kafka.producer import Acknowledgements
from connectors.kafka.settings import KafkaUnreachable
from streaming.cli.log import logger
from streaming.cli.signals import EndedBySignal, end_requested


@contextmanager
def ending_requested(acknowledged: Acknowledgements) -> Iterator[threading.Event]:
    """Yield an event that signals set, as `end_requested` does; the block writes.

    After a signal, the block has time while Kafka acknowledges records. If it is
    interrupted, or Kafka is unreachable, the number of acknowledged records is logged.
    """
    try:
        with end_requested(progress=lambda: acknowledged.count) as ending:
            yield ending
    except (EndedBySignal, KafkaUnreachable):
        if acknowledged.count:
            count = f"{acknowledged.count:,}"
            logger.error("Kafka acknowledged only %s records", count)
        raise
