"""Traffic in which channels, groups, participants and taps come and go without end.

A *generation* begins each minute: the channels of `make chaos`, three groups of MVDS, a
tap of each protocol and participants that join, leave and return. It lasts for
`LIFE_S`, so six generations are there at a time, with about 200 frames a second. After
every `_INVALID_EVERY` records comes one that cannot be decoded.

Copies of such channels a day earlier fill the state: they are forgotten during the run
(`run --forget-days 1`), as many each minute as begin. So whatever grows with the number
of channels stays level.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count, islice
from random import Random

from msgspec import structs

from connectors.kafka.producer import TopicRecord
from connectors.simulator.records import simulation_of
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.profile_share import ProfileShare
from sds_core.simulation.scenario import (
    Absences,
    ChannelGroup,
    Churn,
    Scenario,
    Tap,
)
from sds_core.wire import decode, encode
from tests.support.chaos.traffic import scenario as kinds_of_trouble

PARTITIONS = 4
STRIDE_S, LIFE_S, SETTLE_S = 60, 300, 30
DAY_MS = 86_400_000

_FASTER = 4.5
"""Factor on the traffic of `make chaos`, which has ten frames a second."""
_MIRRORED = 0.2
_INVALID_EVERY = 200
_FILTER = {"capacity": 1_000, "error_rate": 0.001}
"""A full size would fill a disk in a night: 2.5 MB a second."""

_Begun = tuple[int, Iterator[TopicRecord]]
_Waiting = list[tuple[int, int, TopicRecord, Iterator[TopicRecord]]]


def traffic(seed: int, start_ms: int) -> Iterator[TopicRecord]:
    """Yield records without end, in the order of their times.

    Args:
        seed: Of everything that is random.
        start_ms: Start of the first generation, Unix ms.
    """
    random = Random(seed)  # noqa: S311 - traffic
    begun = (
        (begin_ms, simulation_of(one, random.getrandbits(32), begin_ms, partitions)[0])
        for number in count()
        for begin_ms in [start_ms + number * STRIDE_S * 1_000]
        for one, partitions in (
            (_channels(f"live{number}"), PARTITIONS),
            # In which order payloads of several partitions are taken depends on the
            # batches, if a tap is late beside the clock of another one.
            (_groups(f"live{number}"), 1),
        )
    )
    for number, record in enumerate(merged(begun), 1):
        yield record
        if number % _INVALID_EVERY == 0:
            value = b"\xff" + random.randbytes(40)
            yield replace(record, value=value, headers=())


def traffic_before(seed: int, start_ms: int, generations: int) -> Iterator[TopicRecord]:
    """Yield the channels of some generations, all copies of the first one.

    A simulation of each would take a minute for six of them.

    Args:
        seed: Of everything that is random.
        start_ms: Start of the first generation, Unix ms.
        generations: Their number.
    """
    name = "before"
    simulated = simulation_of(_channels(name), seed, start_ms, PARTITIONS)
    records = [*simulated.records]
    yield from merged(
        (start_ms + later_ms, map(partial(_copy, name, number, later_ms), records))
        for number in range(generations)
        for later_ms in [number * STRIDE_S * 1_000]
    )


def _copy(name: str, number: int, later_ms: int, record: TopicRecord) -> TopicRecord:
    """Return a record of the same traffic under another name at another time."""
    (observer, tap), *headers = record.headers
    renamed = f"{name}{number}"
    value = record.value
    if value:
        frame = decode(value)
        channel = frame.channel_id.replace(name, renamed, 1)
        value = encode(frame._replace(channel_id=channel))
    return replace(
        record,
        timestamp_ms=record.timestamp_ms + later_ms,
        key=record.key and record.key.replace(name.encode(), renamed.encode(), 1),
        value=value,
        headers=((observer, tap.replace(name.encode(), renamed.encode(), 1)), *headers),
    )


def mirrored(duration_s: float) -> Scenario:
    """Return the traffic of channels that last, for the node that is mirrored."""
    troubles = _varied(kinds_of_trouble(), "mirrored-", _MIRRORED)
    return structs.replace(troubles, duration_s=duration_s)


def merged(begun: Iterable[_Begun]) -> Iterator[TopicRecord]:
    """Merge streams by time, each of which is asked for only when it begins.

    Args:
        begun: Begin of each stream, Unix ms, in order, and its records in order.
    """
    waiting: _Waiting = []
    for number, (begin_ms, records) in enumerate(begun):
        while waiting and waiting[0][0] < begin_ms:
            yield _take(waiting)
        for record in islice(records, 1):
            entry = (record.timestamp_ms, number, record, records)
            heapq.heappush(waiting, entry)
    while waiting:
        yield _take(waiting)


def _take(waiting: _Waiting) -> TopicRecord:
    _, number, record, records = waiting[0]
    following = next(records, None)
    if following is None:
        heapq.heappop(waiting)
    else:
        entry = (following.timestamp_ms, number, following, records)
        heapq.heapreplace(waiting, entry)
    return record


def _channels(name: str) -> Scenario:
    """Return the channels of a generation."""
    absences = Absences(share=0.3, mean_present_s=90, mean_away_s=30)
    return structs.replace(
        _varied(kinds_of_trouble(), f"{name}-", _FASTER),
        duration_s=float(LIFE_S),
        settle_s=float(SETTLE_S),
        churn=Churn(joining_share=0.3, leaving_share=0.3, absences=absences),
        taps=(Tap(name=f"{name}-sds", record_loss=0.001, replica_share=0.01),),
    )


def _groups(name: str) -> MvdsScenario:
    """Return the groups of a generation."""
    return MvdsScenario(
        protocol="mvds",
        name=name,
        description="three groups for a few minutes",
        duration_s=float(LIFE_S),
        settle_s=float(SETTLE_S),
        nodes=4,
        senders=2,
        groups=3,
        interval_s=10.0,
        network=kinds_of_trouble().network,
        taps=(Tap(name=f"{name}-mvds"),),
    )


def _varied(scenario: Scenario, prefix: str, factor: float) -> Scenario:
    """Return a scenario with other names, other rates and short filters."""
    return structs.replace(
        scenario,
        channels=tuple(_group(one, prefix, factor) for one in scenario.channels),
    )


def _group(group: ChannelGroup, prefix: str, factor: float) -> ChannelGroup:
    interval_s = group.traffic.mean_interval_s / factor
    profiles = tuple(
        structs.replace(one, overrides={**one.overrides, "bloom": _FILTER})
        for one in group.profiles or (ProfileShare(),)
    )
    return structs.replace(
        group,
        name=f"{prefix}{group.name}",
        traffic=structs.replace(group.traffic, mean_interval_s=interval_s),
        profiles=profiles,
    )
