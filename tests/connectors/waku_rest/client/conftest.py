"""A conformance node for the tests of the client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.waku_node import ConformanceNode


@pytest.fixture(scope="module")
def server() -> Iterator[ConformanceNode]:
    """The node of most tests: to start one takes longer than to ask it."""
    with ConformanceNode() as made:
        yield made


@pytest.fixture
def node(server: ConformanceNode) -> ConformanceNode:
    """A node as new."""
    server.forget()
    return server
