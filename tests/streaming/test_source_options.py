"""Options of the Spark source, and that they show no secret."""

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


def test_options_have_all_settings_and_secrets_are_separate() -> None:
    """The reader in a worker needs the same access as the driver."""
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
    frames = spark.readStream.format(FORMAT).options(
        **SourceSettings(kafka).to_options()
    )
    analyzed = frames.load()._jdf.queryExecution().analyzed()  # noqa: SLF001 - as Spark's own page does
    configuration = str(spark.sparkContext.getConf().getAll())
    shown = (plans, progress, analyzed.treeString(), configuration)
    assert "Physical Plan" in plans
    assert "redacted" in analyzed.treeString()  # Options are shown there.
    assert [text for text in shown if TELLTALE in text] == []
