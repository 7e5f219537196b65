"""Messages and differences that all contenders get; the same seed, the same ones."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from sds_core.prolly.hashing import boundary_limit, leaf_hash
from sds_core.prolly.item import Item, pack

SHAPES: Final = ("scattered", "recent", "burst")

SIZES: Final = (10_000, 100_000, 1_000_000)
DIFFERENCES: Final = (1, 10, 100, 1_000, 10_000)

_START_NS: Final = 1_760_000_000_000_000_000
_MEAN_GAP_NS: Final = 1_000_000_000
_NEWEST: Final = 5
"""Recent differences are among so many times as many of the newest messages."""


class Workload(NamedTuple):
    """Two sets of messages: all, and those that a side lacks.

    Attributes:
        items: All messages, in order.
        lacked_here: Numbers of those that the client lacks.
        lacked_there: Numbers of those that the server lacks.
    """

    items: Sequence[Item]
    lacked_here: Collection[int]
    lacked_there: Collection[int] = ()

    @property
    def only_there(self) -> set[Item]:
        """Messages that only the server has: what a contender must find."""
        return {self.items[number] for number in self.lacked_here}

    @property
    def only_here(self) -> set[Item]:
        """Messages that only the client has."""
        return {self.items[number] for number in self.lacked_there}


def messages(number: int, seed: int) -> list[Item]:
    """Return messages with random hashes, a second apart on average, in order.

    Gaps are exponential, as those of many independent senders are.
    """
    rng = random.Random(f"messages {number} {seed}")  # noqa: S311 - a benchmark
    gap = rng.expovariate
    time_ns = _START_NS
    made = []
    for _ in range(number):
        time_ns += 1 + int(gap(1.0) * _MEAN_GAP_NS)
        made.append(Item(time_ns, rng.randbytes(32)))
    return made


def differing(number: int, differences: int, shape: str, seed: int) -> list[int]:
    """Return the numbers of the messages that a side lacks, in order.

    Args:
        number: Number of all messages.
        differences: How many are lacked.
        shape: `scattered`: anywhere; `recent`: among the newest five times as many;
            `burst`: all of a stretch that ends as many messages before the end.
        seed: Decides which, unless it is a burst.
    """
    rng = random.Random(f"{shape} {number} {differences} {seed}")  # noqa: S311
    match shape:
        case "scattered":
            return sorted(rng.sample(range(number), differences))
        case "recent":
            newest = range(number - _NEWEST * differences, number)
            return sorted(rng.sample(newest, differences))
        case "burst":
            return list(range(number - 2 * differences, number - differences))
    text = f"no shape {shape}"
    raise ValueError(text)


def cells() -> list[tuple[int, int, str]]:
    """Return all combinations of size, differences and shape that make sense.

    At most a tenth of the messages differ.
    """
    return [
        (number, differences, shape)
        for number in SIZES
        for shape in SHAPES
        for differences in DIFFERENCES
        if differences <= number // 10
    ]


def without_boundaries(
    items: Sequence[Item], stretch: range, fan_out: int, seed: int
) -> list[Item]:
    """Return messages of which a stretch has chosen hashes: none of them a boundary.

    Args:
        items: Messages in order.
        stretch: Numbers of those that get other hashes.
        fan_out: Of the trees that are meant.
        seed: Decides the hashes.
    """
    rng = random.Random(f"stretch {len(stretch)} {seed}")  # noqa: S311
    limit = boundary_limit(fan_out)
    made = list(items)
    for number in stretch:
        while leaf_hash(pack(made[number])) < limit:
            made[number] = Item(made[number].timestamp_ns, rng.randbytes(32))
    return made
