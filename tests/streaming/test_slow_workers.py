"""A Python process of Spark that answers too late, as on a machine that is too busy."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
from streaming.job import running_job
from tests.support.streaming.jobs import job_settings, wait_for_end
from tests.support.streaming.records import a_frame, produce

PROCESS = "pyspark.sql.streaming.python_streaming_source_runner"
"""Plans batches beside the driver. Spark waits 10 s for it."""


pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def slow_python(directory: Path) -> Path:
    """A Python of which that process takes longer than 10 s the first time."""
    path = directory / "python"
    path.write_text(
        "#!/bin/sh\n"
        f'if [ "$2" = {PROCESS} ] && mkdir "{directory}/late" 2>/dev/null; then\n'
        "  exec sleep 15\n"
        "fi\n"
        f'exec "{sys.executable}" "$@"\n'
    )
    path.chmod(0o755)
    return path


def test_process_that_answers_too_late_is_started_again(
    topic: Callable[..., KafkaSettings],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log says why it takes longer; the job reads all that there is."""
    caplog.set_level(logging.INFO, "sds-monitor")
    kafka = topic()
    produce(kafka, {"value": a_frame("a")}, {"value": a_frame("b")})
    python = slow_python(tmp_path)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    with running_job(spark, job_settings(kafka, tmp_path / "a")) as job:
        wait_for_end(job)
        assert job.report(0)["totals"]["messages"] == 2
    assert (tmp_path / "late").exists()
    (late,) = (one for one in caplog.messages if "did not answer within 10 s" in one)
    assert "restarts now" in late
