"""That the Spark source shows no secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSecurity, KafkaSettings
from streaming.source import FORMAT
from tests.support.streaming.jobs import wait_until

TELLTALE = "Hu5h-7719"


@pytest.mark.kafka
@pytest.mark.spark
def test_spark_shows_no_secret(
    spark: SparkSession,
    topic: Callable[..., KafkaSettings],
    live: Callable[..., Any],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Neither in plans, nor in progress, nor in the configuration."""
    # Without TLS and SASL no client uses the secrets, but they go the same way.
    secrets = KafkaSecurity(
        username="alice",
        password=f"of-alice-{TELLTALE}",
        key_password=f"key-{TELLTALE}",
    )
    kafka = replace(topic(partitions=1), security=secrets)
    write([TopicRecord(0, 1_000, b"ch", b"no frame", ())], kafka)
    with live(kafka) as job:
        wait_until(job, lambda: bool(job.query.recentProgress))
        capfd.readouterr()
        job.query.explain(extended=True)
        plans = capfd.readouterr().out
        progress = "".join(one.json for one in job.query.recentProgress)
    frames = spark.readStream.format(FORMAT).load()
    analyzed = frames._jdf.queryExecution().analyzed()  # noqa: SLF001 - as Spark's own page does
    configuration = str(spark.sparkContext.getConf().getAll())
    shown = (plans, progress, analyzed.treeString(), configuration)
    assert "Physical Plan" in plans
    assert FORMAT in analyzed.treeString()
    assert [text for text in shown if TELLTALE in text] == []
