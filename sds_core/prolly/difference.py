"""Finds the nodes that only one of two trees has.

The comparison starts at the roots. On each level, it drops the nodes that both trees
have, and replaces all other nodes by their children. The comparison finds every
difference, because it drops only nodes that have equal Merkle hashes, and such nodes
have equal subtrees. The CPU time of the comparison depends on the size of the
difference, not on the size of the trees.
"""

from __future__ import annotations

from collections.abc import Sequence

from sds_core.prolly.node import Node
from sds_core.prolly.tree import ProllyTree


def unequal_on(
    level: int, first: ProllyTree, second: ProllyTree
) -> tuple[list[Node], list[Node]]:
    """Return a level's nodes that only `first` has, and those that only `second` has.

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
    """Return the children of all `nodes`, from left to right."""
    return [child for node in nodes for child in node.children]
