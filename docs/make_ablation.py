"""Measures what each kind of repair brings, for docs/reliable-channel.md.

``python -m docs.make_ablation`` runs it; it takes two minutes of one processor. The
same versions give the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean
from typing import NamedTuple

from docs.page_part import PagePart, table
from sds_core.message_channel import Cause, Profile
from sds_core.reliable_channel import (
    MessageReceived,
    ReliableChannelCore,
    ReliableChannelOptions,
    RetrievalStrategy,
    SegmentationOptions,
    Send,
    Start,
)
from sds_core.simulation.delays import Uniform
from sds_core.simulation.reliable_network import ReliableNetwork
from sds_core.simulation.scenario import Link
from sds_core.waku import autosharded_topic

PART = PagePart("reliable-channel.md", "make_ablation", "what each repair brings")

_CHANNEL = "tea"
_TOPIC = "/kettle/1/tea/proto"
_SHARD = autosharded_topic(_TOPIC, 1, 8)
_START_MS = 1_786_000_000_000
_DELAY = Uniform(low_ms=30, high_ms=300)

PARTICIPANTS = 5
LOSSES = (0.01, 0.05, 0.1, 0.2)
SEEDS = range(1, 7)
PARITY_RATE = 0.125
"""That of status-go and LIP-243."""

SOON_MS = 10_000
"""Without losses everything arrives within this time, and nothing is repaired in it."""
LATE_MS = 15 * 60_000
"""Longer than SDS-R, all retries, and the time after which a message is given up."""

_SOON = f"{SOON_MS // 1_000} s"
_LATE = f"{LATE_MS // 60_000} min"


class Load(NamedTuple):
    """What the participants send, in turn.

    Attributes:
        name: Heading of its table.
        payload_bytes: Length of each payload.
        messages: Number of payloads.
        interval_ms: Time between two.
    """

    name: str
    payload_bytes: int
    messages: int
    interval_ms: int


LOADS = (
    Load("small", 1_000, 40, 10_000),
    Load("large", 1_048_576, 4, 60_000),
)


class Repairs(NamedTuple):
    """What a channel does about losses.

    Attributes:
        name: Its name in the tables.
        sds_r: Whether participants ask each other for what they miss.
        parity: Whether payloads of several segments get parity segments.
        retries: Whether senders repeat what nobody acknowledged.
    """

    name: str
    sds_r: bool
    parity: bool
    retries: bool = False


VARIANTS = (
    Repairs("no repair", sds_r=False, parity=False),
    Repairs("SDS-R", sds_r=True, parity=False),
    Repairs("parity", sds_r=False, parity=True),
    Repairs("both", sds_r=True, parity=True),
)


def variants(load: Load) -> list[Repairs]:
    """Return the kinds of repair that differ: one segment has no parity."""
    segmentation = SegmentationOptions(parity_rate=PARITY_RATE)
    has_parity = segmentation.data_count(load.payload_bytes) > 1
    return [one for one in VARIANTS if has_parity or not one.parity]


class Measured(NamedTuple):
    """Result of one simulation.

    Attributes:
        soon: Share of the deliveries within `SOON_MS` of the sending, in [0, 1].
        late: The same within `LATE_MS`.
        carried: Bytes on the way to other participants, without sync messages, per
            delivered byte of payload; None if nothing was delivered.
        syncs: Number of sync messages.
        sync_bytes: Bytes of them, each counted once.
        minutes: Duration.
    """

    soon: float
    late: float
    carried: float | None
    syncs: int
    sync_bytes: int
    minutes: float


def options(repairs: Repairs) -> ReliableChannelOptions:
    """Return the options of all channels: the defaults but for repair."""
    given = ReliableChannelOptions()
    segmentation = given.segmentation or SegmentationOptions()
    rate = PARITY_RATE if repairs.parity else 0.0
    return replace(
        given,
        retrieval=RetrievalStrategy.SDS_R if repairs.sds_r else RetrievalStrategy.NONE,
        max_retry_attempts=given.max_retry_attempts if repairs.retries else 0,
        # The store would repair everything.
        query_on_connect=False,
        # Otherwise all that follows a lost message waits for ever.
        timeout_for_lost_messages_ms=Profile().lost_after_ms,
        segmentation=replace(segmentation, parity_rate=rate),
    )


def simulate(load: Load, repairs: Repairs, loss: float, seed: int) -> Measured:
    """Simulate a conversation on a lossy network.

    Args:
        load: What is sent.
        repairs: What is done about losses.
        loss: Share of transmissions lost on each link, each for itself.
        seed: Seed of losses, delays, payloads and timers.
    """
    network = ReliableNetwork(
        start_ms=_START_MS,
        link=Link(loss=loss, delay=_DELAY),
        participants=PARTICIPANTS,
        seed=seed,
    )
    names = [f"participant {number}" for number in range(PARTICIPANTS)]
    for name in names:
        channel = ReliableChannelCore(
            _CHANNEL,
            name,
            _TOPIC,
            pubsub_topic=_SHARD,
            now_ms=_START_MS,
            random=Random(f"{seed}, {name}"),  # noqa: S311 - no secrets
            options=options(repairs),
        )
        network.join(name, channel)
        network.apply(name, Start())
    random = Random(seed)  # noqa: S311 - no secrets
    sent_ms: dict[bytes, int] = {}
    for number in range(load.messages):
        payload = random.randbytes(load.payload_bytes)
        sent_ms[payload] = network.now_ms
        network.apply(names[number % PARTICIPANTS], Send(payload))
        network.run(load.interval_ms)
    network.run(LATE_MS)
    return _measured(network, sent_ms)


def _measured(network: ReliableNetwork, sent_ms: dict[bytes, int]) -> Measured:
    taken = [
        (at_ms - sent_ms[event.payload], len(event.payload))
        for at_ms, _, event in network.events
        if isinstance(event, MessageReceived)
    ]
    receivers = PARTICIPANTS - 1
    due = len(sent_ms) * receivers
    delivered_bytes = sum(size for time_ms, size in taken if time_ms <= LATE_MS)
    sync_sizes, other_bytes = [], 0
    for one in network.transmissions:
        size = len(one.dispatch.message.payload)
        if one.dispatch.cause is Cause.SYNC:
            sync_sizes.append(size)
        else:
            other_bytes += size
    return Measured(
        sum(time_ms <= SOON_MS for time_ms, _ in taken) / due,
        sum(time_ms <= LATE_MS for time_ms, _ in taken) / due,
        other_bytes * receivers / delivered_bytes if delivered_bytes else None,
        len(sync_sizes),
        sum(sync_sizes),
        (network.now_ms - _START_MS) / 60_000,
    )


class Cell(NamedTuple):
    """Simulations of one load, loss and kind of repair, with different seeds."""

    load: Load
    loss: float
    repairs: Repairs
    results: list[Measured]


def measure(
    loads: Sequence[Load] = LOADS,
    losses: Sequence[float] = LOSSES,
    seeds: Sequence[int] = SEEDS,
) -> list[Cell]:
    """Simulate everything that the tables show."""
    return [
        Cell(
            load, loss, repairs, [simulate(load, repairs, loss, seed) for seed in seeds]
        )
        for load in loads
        for loss in losses
        for variant in variants(load)
        for repairs in (variant, variant._replace(retries=True))
    ]


def about() -> str:
    """Return what all simulations have in common, one sentence per line."""
    waits_ms = options(VARIANTS[0]).timeout_for_lost_messages_ms or 0
    return "\n".join(
        (
            f"{PARTICIPANTS} participants send in turn, over links that lose each "
            "transmission independently.",
            f"The column *repair* shows whether *SDS-R*, *parity* (rate {PARITY_RATE}) "
            "or both are enabled. The sender retries only in the last three columns.",
            "The channels do not use a store.",
            f"In these simulations, a channel waits at most {waits_ms // 60_000} "
            "minutes for a missing message. By default, a channel waits without limit.",
            f"Each figure is the mean of {len(SEEDS)} simulations, with minimum and "
            "maximum in brackets.",
            "",
            f"- *{_SOON}* and *{_LATE}*: percentage of deliveries that happen "
            "within this time after the payload is sent.",
            f"  A payload has {PARTICIPANTS - 1} deliveries, one to each other "
            "participant. Deliveries are in causal order.",
            "- *bytes*: overhead, as a ratio. The bytes of segments, parity, retries "
            "and repairs are multiplied by the number of receivers "
            f"({PARTICIPANTS - 1}), and divided by the bytes of payload that are "
            f"delivered within {_LATE}.",
            "  Without overhead, this figure is 1.",
        )
    )


def block(cells: Iterable[Cell]) -> str:
    """Return the tables, between their markers."""
    cells = list(cells)
    lines = [PART.begin, "", about()]
    for load in dict.fromkeys(cell.load for cell in cells):
        lines += ["", *_table(load, [cell for cell in cells if cell.load == load])]
    rates = [
        sum(one.syncs for one in cell.results)
        / sum(one.minutes for one in cell.results)
        for cell in cells
    ]
    results = [one for cell in cells for one in cell.results]
    mean_bytes = sum(one.sync_bytes for one in results) / sum(
        one.syncs for one in results
    )
    lines += [
        "",
        f"The columns *bytes* exclude sync messages. All participants together send "
        f"{min(rates):.1f} to {max(rates):.1f} sync messages a minute. A sync message "
        f"has {mean_bytes:,.0f} bytes on average.",
        "",
        PART.end,
    ]
    return "\n".join(lines)


def _table(load: Load, cells: list[Cell]) -> Iterator[str]:
    segmentation = SegmentationOptions(parity_rate=PARITY_RATE)
    data = segmentation.data_count(load.payload_bytes)
    parity = segmentation.parity_count(data)
    yield (
        f"*{load.name.capitalize()}*: {load.messages} payloads of "
        f"{load.payload_bytes:,} bytes, one every {load.interval_ms // 1_000} s. "
        f"Segments of a payload: {data} without parity, {data + parity} with parity."
    )
    yield ""
    measures = [_SOON, _LATE, "bytes"]
    heads = [*measures, *(f"retries: {one}" for one in measures)]
    rows = []
    for place in range(0, len(cells), 2):
        without, with_retries = cells[place : place + 2]
        rows.append(
            [
                f"{without.loss * 100:g} %",
                without.repairs.name,
                *_figures(without.results),
                *_figures(with_retries.results),
            ]
        )
    yield from table(["loss", "repair", *heads], rows)


def _figures(results: list[Measured]) -> Iterator[str]:
    yield _spread([one.soon for one in results], lambda share: f"{share * 100:.0f}")
    yield _spread([one.late for one in results], lambda share: f"{share * 100:.0f}")
    carried = [one.carried for one in results if one.carried is not None]
    yield _spread(carried, lambda ratio: f"{ratio:.2f}")


def _spread(values: list[float], shown: Callable[[float], str]) -> str:
    """Return the mean, with the least and the greatest value."""
    if not values:
        return "none"
    return f"{shown(fmean(values))} ({shown(min(values))}-{shown(max(values))})"


def main() -> None:
    """Write the tables into the page."""
    PART.write(block(measure()))


if __name__ == "__main__":
    main()
