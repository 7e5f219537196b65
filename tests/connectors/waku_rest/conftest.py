"""A node with a small cache, and rigs whose spools are closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.waku_node import ConformanceNode
from tests.support.waku_rest.listening import CACHE
from tests.support.waku_rest.rig import Rig


@pytest.fixture(autouse=True)
def _nodes_are_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise most of the time would be spent on waiting."""
    for module in ("listener", "sweeper"):
        monkeypatch.setattr(f"connectors.waku_rest.{module}._LONGEST_S", 0.05)


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Make rigs one after another, each on the spool that the one before left."""
    made: list[Rig] = []

    def make(*nodes: ConformanceNode, **settings: object) -> Rig:
        if made:
            made.pop().close()
        made.append(Rig(tmp_path / "spool", *nodes, **settings))
        return made[0]

    yield make
    for rig in made:
        rig.close()


@pytest.fixture
def node() -> Iterator[ConformanceNode]:
    """A node that is up."""
    with ConformanceNode(relay_capacity=CACHE) as made:
        yield made
