"""A job that ends within the commit of a batch, with Kafka and Spark."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording, load_truth
from sds_core.observer.incidents import IncidentQuery
from sds_core.simulation.comparison import compare
from streaming.failure import JobFailed
from streaming.job import Job
from streaming.settings import HistorySettings
from tests.support.streaming.jobs import wait_for_end
from tests.support.streaming.steps import Steps

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

Live = Callable[..., AbstractContextManager[Job]]


def stored(job: Job) -> Any:
    """Incidents, and minutes of the history without their numbers."""
    minutes = {
        name: [
            row | {"told": 0}
            for row in job.stored["sds"].find_minutes(name, 0, 1 << 60)
        ]
        for name in job.board.snapshot.views["sds"].totals
    }
    incidents = job.stored["sds"].find_incidents(IncidentQuery())
    return incidents, minutes, job.report(0)["channels"]


def test_job_that_ends_within_a_commit_finds_all_the_same(
    topic: Callable[..., KafkaSettings],
    live: Live,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At each of three steps: as one to which nothing happened."""
    kafka = topic(partitions=0)
    records = load_recording()
    ensure_frames_topic(kafka, partitions_of(records))
    write(records, kafka)

    def options(name: str) -> dict[str, Any]:
        history = HistorySettings(tmp_path / name / "history", has_topics=False)
        return {
            "checkpoint": name,
            "history": history,
            "report_detail": True,
            "until_caught_up": True,
            "rows": 500,
        }

    with live(kafka, **options("whole")) as job:
        wait_for_end(job)
        expected = stored(job)
    for step in ("DELETE FROM batch", "before COMMIT", "after COMMIT"):
        steps = Steps(step)
        with monkeypatch.context() as patches:
            steps.watch_ledger(patches)
            with live(kafka, **options(step)) as job, pytest.raises(JobFailed):
                wait_for_end(job)
        assert steps.ended
        with live(kafka, **options(step)) as job:
            wait_for_end(job)
            assert stored(job) == expected
            found = compare(load_truth(), job.report(0))
        assert [one for one in found if not one.same] == []
