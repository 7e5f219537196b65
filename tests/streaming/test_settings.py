"""Settings of a job, as Spark gets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.kafka.settings import KafkaSettings
from streaming.settings import JobSettings, SourceSettings


@pytest.mark.parametrize(
    ("trigger_s", "text"),
    [
        (0.0, "0 milliseconds"),
        (0.00001, "0 milliseconds"),
        (0.5, "500 milliseconds"),
        (1.0, "1000 milliseconds"),
        (3_153_600_000.0, "3153600000000 milliseconds"),
    ],
)
def test_trigger_is_a_text_that_spark_reads(trigger_s: float, text: str) -> None:
    """Spark refuses a number with an exponent, such as 1e-05."""
    source = SourceSettings(KafkaSettings("b:1"))
    settings = JobSettings(source, Path("checkpoint"), trigger_s=trigger_s)
    assert settings.trigger == {"processingTime": text}
