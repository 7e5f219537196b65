"""What Spark is told of the source, and what it shows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSecurity, KafkaSettings, Mechanism, Protocol
from streaming.settings import SourceSettings
from streaming.source import FORMAT
from tests.support.streaming.jobs import wait_until

TELLTALE = "Hu5h-7719"
SETTINGS = SourceSettings(
    KafkaSettings(
        "127.0.0.1:1",
        security=KafkaSecurity(
            Protocol.SASL_SSL,
            ca_file="ca.pem",
            certificate_file="own.pem",
            key_file="own.key",
            key_password=f"key-{TELLTALE}",
            mechanism=Mechanism.PLAIN,
            username="alice",
            password=f"of-alice-{TELLTALE}",
        ),
    )
)


def test_options_carry_all_settings_and_secrets_apart() -> None:
    """The reader in a worker is let in as the driver is."""
    options = SETTINGS.to_options()
    assert SourceSettings.from_options(options) == SETTINGS
    holding = {name for name, value in options.items() if TELLTALE in value}
    assert holding == {"password", "key_password"}


@pytest.mark.kafka
@pytest.mark.spark
def test_spark_shows_no_secret(
    spark: SparkSession,
    topic: Callable[..., KafkaSettings],
    live: Callable[..., Any],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Not in the plans of a running query, its progress, or the configuration."""
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
    frames = spark.readStream.format(FORMAT).options(
        **SourceSettings(kafka).to_options()
    )
    analyzed = frames.load()._jdf.queryExecution().analyzed()  # noqa: SLF001 - as Spark's own page does
    configuration = str(spark.sparkContext.getConf().getAll())
    shown = (plans, progress, analyzed.treeString(), configuration)
    assert "Physical Plan" in plans
    assert "redacted" in analyzed.treeString()  # Options are shown there.
    assert [text for text in shown if TELLTALE in text] == []
