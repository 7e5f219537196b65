"""That the Spark source shows no secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSecurity, KafkaSettings
from sds_core.observer.protocols import PROTOCOLS
from streaming.settings import SourceSettings
from streaming.source import FORMAT, read_frames
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
    frames = read_frames(spark, SourceSettings(kafka), PROTOCOLS)
    configuration = str(spark.sparkContext.getConf().getAll())
    shown = (plans, progress, analyzed(frames), configuration)
    assert "Physical Plan" in plans
    assert [text for text in shown if TELLTALE in text] == []
    # Spark would show an option.
    with_option = spark.readStream.format(FORMAT).option("word", TELLTALE).load()
    assert TELLTALE in analyzed(with_option)


def analyzed(frames: DataFrame) -> str:
    """The plan of the frames, with options, as Spark's own page shows it."""
    execution = frames._jdf.queryExecution()  # noqa: SLF001
    return str(execution.analyzed().treeString())
