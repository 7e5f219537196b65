"""Python processes of Spark that answer too late, as on a machine that is too busy."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from connectors.kafka.settings import KafkaSettings
from streaming.failure import NoWorker, lacks_worker
from streaming.job import running_job
from tests.support.streaming.jobs import job_settings, wait_for_end
from tests.support.streaming.records import a_frame, produce

PROCESSES = ("create_data_source", "python_streaming_source_runner")
"""Those that Spark waits for by itself: at the start of a query, and of its source."""


def slow_python(directory: Path) -> Path:
    """A Python of which each of the processes takes longer than 10 s the first time."""
    path = directory / "python"
    modules = "|".join(f"*{name}" for name in PROCESSES)
    path.write_text(
        "#!/bin/sh\n"
        f'case "$2" in {modules})\n'
        f'  if mkdir "{directory}/$2" 2>/dev/null; then exec sleep 15; fi;;\n'
        "esac\n"
        f'exec "{sys.executable}" "$@"\n'
    )
    path.chmod(0o755)
    return path


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
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
    assert len(list(tmp_path.glob("pyspark.*"))) == len(PROCESSES)
    late = [one for one in caplog.messages if "did not answer within 10 s" in one]
    assert len(late) == len(PROCESSES)


def test_error_says_what_to_do() -> None:
    """Spark's own words name neither cause nor remedy."""
    error = PySparkException("x: Python worker failed to connect back.\n at y")
    assert lacks_worker(error)
    assert not lacks_worker(PySparkException("Python worker exited unexpectedly"))
    assert "machine is too busy" in str(NoWorker())
    assert NoWorker().passes
