"""The messages that only one of two trees has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sds_core.prolly.difference import unequal_on
from sds_core.prolly.item import TAIL_KEY, Item, unpack
from sds_core.prolly.node import Node
from sds_core.prolly.tree import ProllyTree


class Difference(NamedTuple):
    """Messages that only one of two trees has, in order of time and hash."""

    only_first: Sequence[Item]
    only_second: Sequence[Item]


def difference(first: ProllyTree, second: ProllyTree) -> Difference:
    """Return the exact difference of two trees with the same fan-out."""
    ours, theirs = unequal_on(0, first, second)
    return Difference(_items(ours), _items(theirs))


def _items(leaves: Sequence[Node]) -> Sequence[Item]:
    return [unpack(leaf.key) for leaf in leaves if leaf.key != TAIL_KEY]
