"""Traffic of 200 frames a second, of which 5 % are a stranger's, in one channel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count

from connectors.kafka.producer import TopicRecord
from sds_core.simulation.scenario import Scenario
from sds_core.wire import BloomFilter, BloomParameters, Dialect
from tests.support.hostile.combined import SHAPES, batch, pairs
from tests.support.hostile.shapes import CHANNEL, Writer, filter_of

_EVERY = 20
"""Of so many frames one is hostile."""

_EMPTY = BloomFilter(Dialect.SPEC).to_wire()
_ENTRIES = 12_500
"""So many short ids are a frame of 150 kB, the longest that Waku carries."""


def healthy(duration_s: float) -> Scenario:
    """A scenario of 20 channels and 200 frames a second, most with a full filter."""
    return Scenario.from_mapping(
        {
            "name": "busy",
            "description": "200 frames a second, with losses",
            "duration_s": duration_s,
            "participants": 40,
            "channels": [
                {
                    "name": "town",
                    "count": 20,
                    "participants": 8,
                    "traffic": {"mean_interval_s": 0.115},
                }
            ],
            "network": {"loss": 0.02},
            "taps": [{"name": "tap", "loss": 0.0}],
        }
    )


def mixed(records: Iterable[TopicRecord]) -> Iterator[TopicRecord]:
    """Yield the records, and after every nineteenth frame a hostile one.

    It lies in partition 0 and has the time of the record before it.
    """
    frames, hostile = count(1), _hostile_values()
    for record in records:
        yield record
        if record.value and next(frames) % (_EVERY - 1) == 0:
            value = next(hostile)
            yield TopicRecord(0, record.timestamp_ms, CHANNEL.encode(), value, ())


def _hostile_values() -> Iterator[bytes]:
    """Yield values of frames in channel `shapes.CHANNEL`, without an end.

    In turn: a long history of new ids, many requests for new ids, an empty filter of a
    new participant, a filter of another size, a long filter of which one bit is in use,
    a history of a new participant, a message that all of them lack, and a frame of two
    shapes of `combined`.
    """
    spec, nim = Writer(Dialect.SPEC), Writer(Dialect.NIM)
    one_bit = BloomFilter(Dialect.NIM, BloomParameters(10, 0.1))
    one_bit.m_bits, one_bit.k, one_bit.bits = 1, 1, bytearray(140_000)
    both = [
        names
        for names in pairs()
        # A frame of this channel, and no more than that.
        if not any(SHAPES[name].parts & {"tap", "channel"} for name in names)
    ]
    makers: tuple[Callable[[int], bytes], ...] = (
        lambda _: spec.frame(history=spec.new_ids(_ENTRIES, 8)).value,
        lambda _: nim.frame(requests=nim.new_ids(_ENTRIES, 8)).value,
        lambda n: spec.frame(f"name-{n}", bloom=_EMPTY).value,
        lambda n: nim.frame(bloom=filter_of(Dialect.NIM, 150_000 + n, 32)).value,
        lambda _: nim.frame(bloom=one_bit.to_wire()).value,
        lambda n: spec.frame(f"name-{n}", history=spec.new_ids(500)).value,
        lambda _: spec.frame("speaker").value,
        lambda n: batch(n, both[n % len(both)])[0].value,
    )
    for number in count():
        yield makers[number % len(makers)](number)
