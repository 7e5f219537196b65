"""Reads the records in ranges of offsets, with one of two Kafka clients.

Both clients return the same records. The default client, confluent-kafka, is several
times faster than kafka-python (docs/architecture.md). kafka-python is for platforms
without a wheel of librdkafka. Each client reads only committed records and never resets
an offset. Each client stops at the end of the range, even if the last offsets hold no
record because of transaction markers or compaction.
`sds_core.observer.record.header_name` converts header names that are not UTF-8.
confluent-kafka cannot read such names, so kafka-python reads records with such names
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from itertools import chain
from operator import methodcaller
from typing import Any, NamedTuple

from connectors.kafka.clients import confluent_options, failure, kafka_python_options
from connectors.kafka.handshake import check_admission, wait_until_listening
from connectors.kafka.record_batches import read_any_batch
from connectors.kafka.settings import (
    Client,
    KafkaSettings,
    KafkaUnreachable,
    RecordsLost,
    TopicMissing,
)
from sds_core.observer.record import Headers, RawRecord, header_name

_POLL_S = 1.0
_POLL_EMPTY_MS = 100
_POLL_RECORDS = 1_000

_HEADERS = methodcaller("headers")
"""Returns the headers of a message of confluent-kafka.

If a header's name is not UTF-8, the message's method `headers` returns a list with a
null pointer, and sets an error. If the method is called directly and often, CPython
optimises the calls and no longer checks for an error. A call by `methodcaller` always
checks for an error, and raises SystemError.
"""

_PARTITION, _OFFSET, _TIMESTAMP, _KEY, _VALUE = map(
    methodcaller, ("partition", "offset", "timestamp", "key", "value")
)

_UNKNOWN_HEADERS: Headers = ((header_name(b"\xff"), None),)
"""Placeholder for all headers of a record if one header's name is not UTF-8."""


class OffsetRange(NamedTuple):
    """Offsets [start, end) of one partition."""

    partition: int
    start: int
    end: int


def fetch(
    client: Client, settings: KafkaSettings, ranges: Sequence[OffsetRange]
) -> Iterator[list[RawRecord]]:
    """Yield lists of all records in the ranges, in offset order within each partition.

    Raises:
        KafkaUnreachable: Nothing arrived for `KafkaSettings.timeout_s`.
        KafkaRefused: A broker refuses the client.
        RecordsLost: Kafka has already deleted a record in one of the ranges.
    """
    ranges = [wanted for wanted in ranges if wanted.end > wanted.start]
    if not ranges:
        return
    if client is Client.CONFLUENT:
        yield from _fetch_confluent(settings, ranges)
    else:
        with kafka_python_consumer(settings) as consumer:
            yield from read_kafka_python(consumer, settings, ranges)


def read_ranges(
    settings: KafkaSettings,
    ranges: Sequence[OffsetRange],
    client: Client = Client.CONFLUENT,
) -> Iterator[RawRecord]:
    """Yield the records of some ranges one by one; see `fetch`."""
    return chain.from_iterable(fetch(client, settings, ranges))


def _fetch_confluent(
    settings: KafkaSettings, ranges: Sequence[OffsetRange]
) -> Iterator[list[RawRecord]]:
    from confluent_kafka import TopicPartition

    consumer = _confluent_consumer(settings)
    open_ranges = {wanted.partition: wanted for wanted in ranges}
    number_of = _numbers_of(settings)
    consumer.assign(
        [TopicPartition(*settings.place_of(r.partition), r.start) for r in ranges]
    )
    patience = _Patience(settings)
    with ExitStack() as stack:
        stack.callback(consumer.unassign)
        spare: Any = None
        while open_ranges:
            # A single call for `_POLL_RECORDS` messages would wait until all of them
            # have arrived, or for `_POLL_S`. The second call does not wait.
            messages = consumer.consume(1, _POLL_S)
            messages += consumer.consume(_POLL_RECORDS - 1, 0)
            events = [one for one in messages if one.error() is not None]
            if events:
                messages = [one for one in messages if one.error() is None]
            records, reached = _records_of(messages, open_ranges, number_of)
            for event in events:
                wanted = open_ranges.get(number_of(event))
                if wanted is not None and _is_end_of_partition(settings, wanted, event):
                    before = reached.get(wanted.partition, 0)
                    reached[wanted.partition] = max(before, event.offset())
            for partition, offset in reached.items():
                if offset >= open_ranges[partition].end:
                    del open_ranges[partition]
                    # A partition that is paused instead would still be paused when it
                    # is assigned again.
                    consumer.incremental_unassign(
                        [TopicPartition(*settings.place_of(partition))]
                    )
            nameless = [
                index
                for index, one in enumerate(records)
                if one.headers is _UNKNOWN_HEADERS
            ]
            if nameless:
                if spare is None:
                    spare = stack.enter_context(kafka_python_consumer(settings))
                _read_headers_again(spare, settings, records, nameless)
            if records:
                yield records
                patience.renew()
            patience.check()


def _numbers_of(settings: KafkaSettings) -> Callable[[Any], int]:
    if len(settings.topics) == 1:
        return _PARTITION
    return lambda message: settings.number_of(message.topic(), message.partition())


def _records_of(
    messages: Sequence[Any],
    open_ranges: Mapping[int, OffsetRange],
    number_of: Callable[[Any], int],
) -> tuple[list[RawRecord], dict[int, int]]:
    """Return the messages in the ranges as records, and each partition's next offset.

    The next offset of a partition follows the offset of its last message. The fields
    are read one after another, each from all messages at once, because a Python loop
    over the messages takes too long. Messages are in offset order within each
    partition.
    `open_ranges` maps each partition to its range. If a header name of a record is not
    UTF-8, the record's headers are `_UNKNOWN_HEADERS`.
    """
    partitions = list(map(number_of, messages))
    offsets = list(map(_OFFSET, messages))
    columns = (
        partitions,
        offsets,
        [time_ms for _, time_ms in map(_TIMESTAMP, messages)],
        map(_KEY, messages),
        map(_VALUE, messages),
        _headers_of(messages),
    )
    records = [tuple.__new__(RawRecord, one) for one in zip(*columns, strict=True)]
    # If a partition occurs repeatedly, `dict` keeps its last offset.
    reached = {
        partition: offset + 1
        for partition, offset in dict(zip(partitions, offsets, strict=True)).items()
        if partition in open_ranges
    }
    ends = {partition: open_ranges[partition].end for partition in reached}
    if len(ends) < len(set(partitions)) or any(ends[p] < reached[p] for p in ends):
        records = [one for one in records if one.offset < ends.get(one.partition, 0)]
    return records, reached


def _headers_of(messages: Sequence[Any]) -> list[Headers]:
    found: list[Headers | None] = []
    # After an error, the loop continues with the next message: a second call for the
    # same message would return the null pointer.
    answers = map(_HEADERS, messages)
    while len(found) < len(messages):
        try:
            found.extend(answers)
        except SystemError:
            found.append(_UNKNOWN_HEADERS)
    return [one or () for one in found]


def _read_headers_again(
    consumer: Any,
    settings: KafkaSettings,
    records: list[RawRecord],
    nameless: Sequence[int],
) -> None:
    """Use kafka-python to read the records whose headers confluent-kafka cannot read.

    `nameless` has the indices of these records in `records`, in ascending order. In
    `records`, each of them is replaced by the record that kafka-python returns.
    """
    places: dict[int, dict[int, int]] = {}
    for index in nameless:
        record = records[index]
        places.setdefault(record.partition, {})[record.offset] = index
    ranges = [OffsetRange(p, min(one), max(one) + 1) for p, one in places.items()]
    try:
        # If Kafka has deleted a record since confluent-kafka read the record, its
        # headers stay `_UNKNOWN_HEADERS`.
        for found in read_kafka_python(consumer, settings, ranges):
            for record in found:
                place = places[record.partition].get(record.offset)
                if place is not None:
                    records[place] = record
    except RecordsLost:
        return


def _is_end_of_partition(
    settings: KafkaSettings, wanted: OffsetRange, message: Any
) -> bool:
    """Return whether an event marks the end of a partition.

    If the event is a permanent error, this function raises the error.
    """
    from confluent_kafka import KafkaError
    from kafka.errors import TopicAuthorizationFailedError

    error = message.error()
    code = error.code()
    # The names of librdkafka's own errors begin with an underscore; the names of a
    # broker's errors do not.
    if code == KafkaError._PARTITION_EOF:  # noqa: SLF001 - as above
        return True
    if code == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - as above
        first = max(wanted.start, message.offset())
        raise RecordsLost(*settings.place_of(wanted.partition), first, wanted.end)
    if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise TopicMissing(message.topic(), settings.bootstrap)
    if error.retriable():
        return False
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise failure(settings, TopicAuthorizationFailedError(message.topic()))
    raise KafkaUnreachable(settings.bootstrap, error.str())


@lru_cache(maxsize=1)
def _confluent_consumer(settings: KafkaSettings):  # type: ignore[no-untyped-def]
    """Return the consumer that the whole process shares.

    A new connection for each batch would take longer than a small batch itself.
    """
    from confluent_kafka import Consumer

    return Consumer(
        {
            **confluent_options(settings),
            # The client requires a group id, but the consumer never joins the group:
            # offsets are in the checkpoint.
            "group.id": "sds-monitor-reader",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            # With the defaults of these two settings, long reads stall
            # (docs/architecture.md).
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 5,
            # By default, the client fetches up to 64 MB of records beyond the end of a
            # range, only to drop them. With these two limits, a broker with a latency
            # of 50 ms still delivers 40 MB/s.
            "queued.max.messages.kbytes": 2_048,
            "max.partition.fetch.bytes": 2_000_000,
            # If a fetch request waits at the end of the log, it delays the next batch
            # by this time, ms. The default is half a second.
            "fetch.wait.max.ms": 10,
            # Hides the warnings that librdkafka logs while a broker restarts.
            "log_level": 2,
            # Even if a broker refuses the client, librdkafka tries to connect without
            # end. Therefore, `check_admission` detects the refusal. If it raises an
            # error in this callback, `consume` raises the same error.
            "error_cb": lambda error: check_admission(settings),
        }
    )


@contextmanager
def kafka_python_consumer(settings: KafkaSettings) -> Iterator[Any]:
    """Yield a `kafka.KafkaConsumer`, and close it at the end of the block."""
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    wait_until_listening(settings)
    try:
        consumer = KafkaConsumer(
            **kafka_python_options(settings),
            bootstrap_timeout_ms=int(settings.timeout_s * 1000),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            # Computing checksums in pure Python takes longer than the rest of the read.
            check_crcs=False,
            max_poll_records=_POLL_RECORDS,
        )
    except KafkaError as error:
        raise failure(settings, error) from error
    read_any_batch(consumer)
    with closing(consumer):
        yield consumer


def read_kafka_python(
    consumer: Any, settings: KafkaSettings, ranges: Sequence[OffsetRange]
) -> Iterator[list[RawRecord]]:
    """Read all records of some ranges with a `kafka.KafkaConsumer`; see `fetch`."""
    from kafka import TopicPartition
    from kafka.errors import AuthorizationError, OffsetOutOfRangeError

    open_ranges = {TopicPartition(*settings.place_of(r.partition)): r for r in ranges}
    consumer.assign(list(open_ranges))
    for partition, wanted in open_ranges.items():
        consumer.seek(partition, wanted.start)
        # An earlier call of this function may have paused the partition.
        consumer.resume(partition)
    patience = _Patience(settings)
    while open_ranges:
        try:
            # The timeout is short: if the remaining offsets hold no record, the call
            # returns only after the timeout.
            polled = consumer.poll(timeout_ms=_POLL_EMPTY_MS)
        except OffsetOutOfRangeError as error:
            ((partition, offset), *_) = error.args[0].items()
            wanted = open_ranges[partition]
            raise RecordsLost(
                partition.topic, partition.partition, offset, wanted.end
            ) from error
        except AuthorizationError as error:
            raise failure(settings, error) from error
        records = [
            RawRecord(
                open_ranges[partition].partition,
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                record.headers,
            )
            for partition, found in polled.items()
            for record in found
            if partition in open_ranges and record.offset < open_ranges[partition].end
        ]
        if records:
            yield records
            patience.renew()
        for partition in list(open_ranges):
            # The position shows the end of the range even if the last offsets hold no
            # record, because the position also advances over such offsets.
            if consumer.position(partition) >= open_ranges[partition].end:
                del open_ranges[partition]
                consumer.pause(partition)
        patience.check()


class _Patience:
    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self.renew()

    def renew(self) -> None:
        self._until = time.monotonic() + self._settings.timeout_s

    def check(self) -> None:
        if time.monotonic() > self._until:
            raise KafkaUnreachable(
                self._settings.bootstrap, f"nothing in {self._settings.timeout_s:g} s"
            )
