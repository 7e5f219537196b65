"""Fixtures of the interoperation with `@waku/sds`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.interop.node import node_with_library
from tests.support.interop.square import OpenSquare, squares


@pytest.fixture(scope="session")
def node() -> str:
    """Path of Node, for which the library is installed."""
    return node_with_library()


@pytest.fixture
def open_square(node: str) -> Iterator[OpenSquare]:
    """Opens channels in virtual time, for Python and js participants."""
    with squares(node) as open_one:
        yield open_one
