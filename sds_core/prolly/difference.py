"""Finds the messages that only one of two trees has.

At each level from the root, the comparison drops nodes that both trees have, and
replaces the others by their children. Equal Merkle hashes mean equal subtrees, so the
comparison finds every difference. The time depends on the size of the difference, not
on the size of the trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sds_core.prolly.item import TAIL_KEY, Item, unpack
from sds_core.prolly.node import Node
from sds_core.prolly.tree import ProllyTree


class OtherFanOut(ValueError):
    """Trees with different fan-outs cannot be compared; the message has both values."""

    def __init__(self, ours: int, theirs: int) -> None:
        super().__init__(
            f"trees of fan-out {ours} and of fan-out {theirs} cannot be compared"
        )


class Difference(NamedTuple):
    """Messages that only one of two trees has, in order of time and hash."""

    only_first: Sequence[Item]
    only_second: Sequence[Item]


def difference(first: ProllyTree, second: ProllyTree) -> Difference:
    """Return the exact difference of two trees.

    Raises:
        OtherFanOut: Their fan-outs differ.
    """
    if first.fan_out != second.fan_out:
        raise OtherFanOut(first.fan_out, second.fan_out)
    ours, theirs = unequal_on(0, first, second)
    return Difference(_items(ours), _items(theirs))


def unequal_on(
    level: int, first: ProllyTree, second: ProllyTree
) -> tuple[list[Node], list[Node]]:
    """Return the nodes of a level that only one of two trees has.

    The two trees must have the same fan-out.
    """
    height = max(level, first.root.level, second.root.level)
    ours, theirs = _unequal([first.raised(height)], [second.raised(height)])
    for _ in range(height - level):
        ours, theirs = _unequal(children_of(ours), children_of(theirs))
    return ours, theirs


def _unequal(
    ours: Sequence[Node], theirs: Sequence[Node]
) -> tuple[list[Node], list[Node]]:
    our_hashes = {node.merkle for node in ours}
    their_hashes = {node.merkle for node in theirs}
    return (
        [node for node in ours if node.merkle not in their_hashes],
        [node for node in theirs if node.merkle not in our_hashes],
    )


def children_of(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return the children of nodes, from left to right."""
    return [child for node in nodes for child in node.children]


def _items(leaves: Sequence[Node]) -> Sequence[Item]:
    return [unpack(leaf.key) for leaf in leaves if leaf.key != TAIL_KEY]
