"""A batch that was repeated in vain is planned again in smaller parts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from sds_core.wire import Dialect, Frame, HistoryEntry, encode
from streaming.batch_log import BatchLog, read_batch_log
from streaming.checkpoint import check_identity, own_files
from streaming.failure import JobFailed
from streaming.job import running_job
from streaming.position import Position
from streaming.settings import BatchLimits, Part, Parts
from streaming.unfinished import Unfinished, next_unfinished, plan_again
from tests.support.golden.checkpoints import CHECKPOINTS
from tests.support.monitor import report_of
from tests.support.streaming.jobs import job_settings, wait_for_end

T0 = 1_768_478_430_000
MIB = 1024 * 1024

BEFORE = Position(records=1_000)
PLANNED = BatchLog(7, 6, BEFORE, 2, planned_records=800)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A copy of the newest golden checkpoint; its second batch is not committed."""
    newest = max(path for path in CHECKPOINTS.iterdir() if path.is_dir())
    copy = Path(shutil.copytree(newest, tmp_path / "checkpoint"))
    (copy / "commits" / "1").unlink()
    return copy


def test_committed_batch_leaves_what_is_known() -> None:
    """Batches go on to grow after a restart."""
    known = Unfinished(7, 2, Parts((Part(1_800, 100),)))
    assert next_unfinished(BatchLog(8, 8, BEFORE, 2), known) == known
    assert next_unfinished(BatchLog(), None) is None


def test_first_start_repeats_the_batch() -> None:
    """As after every kill."""
    assert next_unfinished(PLANNED, None) == Unfinished(7, 1)
    assert next_unfinished(PLANNED, Unfinished(6, 5)) == Unfinished(7, 1)


def test_each_further_start_plans_an_eighth_of_the_batch() -> None:
    """Down to one record."""
    found = next_unfinished(PLANNED, Unfinished(7, 1))
    assert found == Unfinished(7, 2, Parts((Part(1_800, 100),)))
    smaller = PLANNED._replace(planned_records=15)
    parts = (Part(1_800, 100), Part(1_015, 1))
    assert next_unfinished(smaller, found) == Unfinished(7, 3, Parts(parts))
    later = PLANNED._replace(position=Position(records=1_200))
    parts = (Part(1_800, 100), Part(2_000, 100))
    known = Unfinished(7, 3, Parts((Part(1_800, 100), Part(1_015, 1))))
    assert next_unfinished(later, known) == Unfinished(7, 4, Parts(parts))


def test_batch_of_one_record_stays_as_it_is(checkpoint: Path) -> None:
    """It cannot be made smaller."""
    one = PLANNED._replace(planned_records=1)
    assert next_unfinished(one, Unfinished(7, 1)) == Unfinished(7, 2)
    known = Unfinished(7, 2, Parts((Part(1_800, 1),)))
    plan_again(checkpoint, one, known)
    plan_again(checkpoint, PLANNED, Unfinished(7, 1))
    assert (checkpoint / "offsets" / "1").exists()


def test_batches_are_small_until_the_records_are_read() -> None:
    """Within a part that failed too, smaller than around it."""
    limits = BatchLimits(500, parts=Parts((Part(2_000, 100), Part(1_010, 2))))
    sizes = {records: limits.rows_after(records) for records in (900, 1_009, 1_010)}
    assert sizes == {900: 2, 1_009: 2, 1_010: 100}
    assert [limits.rows_after(records) for records in (1_999, 2_000)] == [100, 500]
    assert BatchLimits(500).rows_after(7) == 500
    assert BatchLimits(50, parts=limits.parts).rows_after(1_500) == 50


def test_plan_is_removed_and_the_log_holds_the_batch_before(checkpoint: Path) -> None:
    """So Spark plans the batch again."""
    log = read_batch_log(checkpoint)
    assert (log.planned_records, log.begin) == (0, None)
    log = log._replace(planned_records=80)
    plan_again(checkpoint, log, next_unfinished(log, Unfinished(1, 1)))
    again = read_batch_log(checkpoint)
    assert (again.planned, again.committed) == (0, 0)
    assert again.position == log.position


def test_first_batch_of_all_begins_where_it_was_planned(checkpoint: Path) -> None:
    """Not where a new checkpoint would; its state goes, which belongs to no batch."""
    (checkpoint / "offsets" / "1").unlink()
    shutil.rmtree(checkpoint / "commits")
    log = read_batch_log(checkpoint)
    unfinished = next_unfinished(log, Unfinished(0, 1))
    assert unfinished is not None
    assert unfinished.parts is not None
    begin = unfinished.parts.begin
    assert begin is not None
    assert set(Position.from_json(begin).next_offsets().values()) == {0}
    plan_again(checkpoint, log, unfinished)
    assert read_batch_log(checkpoint) == BatchLog()


def test_identity_keeps_it(tmp_path: Path) -> None:
    """And one of an older release has none."""
    path = own_files(tmp_path) / "job.json"
    path.parent.mkdir()
    path.write_text('{"topic": "t", "report_detail": false, "starts": 1}')
    identity = check_identity(tmp_path, "t", report_detail=False, has_batches=False)
    assert identity.unfinished is None
    stored = {
        "topic": "t",
        "report_detail": False,
        "unfinished": {
            "batch": 3,
            "starts": 2,
            "parts": {"parts": [[5, 7]], "begin": None},
        },
    }
    path.write_text(json.dumps(stored))
    identity = check_identity(tmp_path, "t", report_detail=False, has_batches=False)
    assert identity.unfinished == Unfinished(3, 2, Parts((Part(5, 7),)))


def with_large_ones(count: int, every: int) -> list[TopicRecord]:
    """Records of one channel; of some, but not the first ones, digests keep 1 MB."""
    records = []
    for number in range(1, count + 1):
        history = [
            HistoryEntry(f"{number}-{n:0500}", os.urandom(1_024), f"{number}-{n:0500}")
            for n in range(0 if number % every else 500)
        ]
        frame = Frame.build(
            Dialect.SPEC,
            message_id=f"m{number}",
            channel_id="town",
            sender_id="ana",
            lamport=T0 + number,
            causal_history=history,
            content=b"c",
        )
        value = encode(frame)
        records.append(TopicRecord(0, T0 + number, b"town", value, ()))
    return records


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_batch_that_is_larger_than_its_first_records_is_read_in_parts(
    topic: Callable[..., KafkaSettings], spark: SparkSession, tmp_path: Path
) -> None:
    """From the third start on; each record counts once."""
    kafka, records = topic(), with_large_ones(640, every=50)
    write(records, kafka)
    checkpoint = tmp_path / "checkpoint"
    settings = job_settings(kafka, checkpoint, size_bytes=8 * MIB)
    for _ in range(2):
        with (
            pytest.raises(
                JobFailed, match="plans the batch again in smaller parts"
            ) as caught,
            running_job(spark, settings) as job,
        ):
            wait_for_end(job)
        assert caught.value.too_large
        assert read_batch_log(checkpoint).planned_records == 640
    with running_job(spark, settings) as job:
        wait_for_end(job)
        report = job.report(0)
    assert report["channels"] == report_of(records)["channels"]
