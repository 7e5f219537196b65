"""Traffic in which channels, groups, participants and taps come and go without end.

A *generation* begins each minute: the channels of `make chaos`, three groups of MVDS, a
tap of each protocol and participants that join, leave and return. It lasts for
`LIFE_S`, so six generations are there at a time, with about 200 frames a second. After
every `_INVALID_EVERY` records comes one that cannot be decoded.

The same traffic a day earlier fills the state: its channels are forgotten during the
run (`run --forget-days 1`), as many each minute as begin. So whatever grows with the
number of channels stays level.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from random import Random

from msgspec import structs

from connectors.kafka.producer import TopicRecord
from connectors.simulator.records import AnyScenario, simulation_of
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.scenario import (
    Absences,
    ChannelGroup,
    Churn,
    ProfileShare,
    Scenario,
    Tap,
)
from tests.support.chaos.traffic import scenario as kinds_of_trouble

PARTITIONS = 4
STRIDE_S, LIFE_S, SETTLE_S = 60, 300, 30
DAY_MS = 86_400_000

_FASTER = 3.5
"""Factor on the traffic of `make chaos`, which has ten frames a second."""
_MIRRORED = 0.2
_INVALID_EVERY = 200
_FILTER = {"capacity": 1_000, "error_rate": 0.001}
"""A full size would fill a disk in a night: 2.5 MB a second."""

_Begun = tuple[int, Iterator[TopicRecord]]
_Waiting = list[tuple[int, int, TopicRecord, Iterator[TopicRecord]]]


def traffic(
    name: str, seed: int, start_ms: int, generations: int | None = None
) -> Iterator[TopicRecord]:
    """Yield the records of some generations, or of all, in the order of their times.

    Args:
        name: First part of the names of channels and taps.
        seed: Of everything that is random; groups of MVDS are named by it, too.
        start_ms: Start of the first generation, Unix ms.
        generations: Number of generations; None for no end.
    """
    random = Random(f"{seed} {name}")  # noqa: S311 - traffic
    numbers = islice(count(), generations)
    begun = (
        (begin_ms, simulation_of(one, random.getrandbits(32), begin_ms, PARTITIONS)[0])
        for number in numbers
        for begin_ms in [start_ms + number * STRIDE_S * 1_000]
        for one in _generation(f"{name}{number}")
    )
    for number, record in enumerate(merged(begun), 1):
        yield record
        if number % _INVALID_EVERY == 0:
            value = b"\xff" + random.randbytes(40)
            yield replace(record, value=value, headers=())


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


def _generation(name: str) -> Iterator[AnyScenario]:
    absences = Absences(share=0.3, mean_present_s=90, mean_away_s=30)
    yield structs.replace(
        _varied(kinds_of_trouble(), f"{name}-", _FASTER),
        duration_s=float(LIFE_S),
        settle_s=float(SETTLE_S),
        churn=Churn(joining_share=0.3, leaving_share=0.3, absences=absences),
        taps=(Tap(name=f"{name}-sds", record_loss=0.001, replica_share=0.01),),
    )
    yield MvdsScenario(
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
        channels=tuple(_channels(one, prefix, factor) for one in scenario.channels),
    )


def _channels(group: ChannelGroup, prefix: str, factor: float) -> ChannelGroup:
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
