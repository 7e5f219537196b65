"""Plays on the Spark session and the broker of all tests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import pytest
from pyspark.sql import SparkSession

from connectors.broker.broker import EmbeddedBroker
from sds_core.observer.channel_table import ChannelTable
from sds_core.simulation.scenario import Scenario
from tests.support.e2e.observed import Observe, Observed, observed


@pytest.fixture(scope="module")
def observe(
    spark: SparkSession,
    kafka_broker: EmbeddedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Observe:
    """Play scenarios, with a channel table or none; one play at a time."""

    def play(
        scenarios: Sequence[Scenario], table: ChannelTable | None = None
    ) -> AbstractContextManager[Observed]:
        return observed(
            spark,
            kafka_broker.bootstrap,
            tmp_path_factory.mktemp("play"),
            scenarios,
            ChannelTable() if table is None else table,
        )

    return play
