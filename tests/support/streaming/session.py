"""The Spark session of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session as the product makes it, with two cores."""
    # Importing pyspark takes longer than most suites that need no session.
    from streaming.session import SessionSettings, make_session

    session = make_session(SessionSettings("local[2]", shuffle_partitions=2))
    yield session
    session.stop()
