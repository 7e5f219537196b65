"""Rows of two jobs do not mix in a history."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from connectors.history.errors import DamagedHistory
from connectors.history.layout import LOCK, day_directory, day_of, file_path
from connectors.history.parquet import ParquetHistory
from connectors.history.schema import NumberedMinute, minute_row, tables_of
from connectors.kafka.offsets import TimedOffset
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.mvds.kind import MVDS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.protocols import ROOT_KIND
from sds_core.observer.sds.totals import ChannelTotals
from streaming.batch_log import read_batch_log
from streaming.cli import group
from streaming.cli.actions import rebuild
from streaming.doctor import history as checks
from streaming.doctor.history import find_mixed_rows
from streaming.doctor.kafka import check_history
from streaming.settings import LATEST, HistorySettings, JobSettings, SourceSettings
from tests.support.history.rows import MONDAY_MS

CHANNEL = ChannelTotals()
MINUTE_MS = 60_000
KAFKA = KafkaSettings("127.0.0.1:1", "sds.frames")


class Offsets:
    """Offsets of a topic with records of two times, in two of its three partitions."""

    def __init__(self, kafka: KafkaSettings) -> None:
        assert kafka.topic == KAFKA.topic

    def partitions(self) -> list[int]:
        """The numbers of the partitions."""
        return [0, 1, 2]

    def first_at_or_after(
        self, partitions: Collection[int], timestamp_ms: int
    ) -> dict[int, TimedOffset]:
        """The first record of each partition that has one."""
        times = {0: MONDAY_MS + 10 * MINUTE_MS + 7, 1: MONDAY_MS + 20 * MINUTE_MS}
        return {
            partition: TimedOffset(500, time_ms)
            for partition, time_ms in times.items()
            if partition in partitions and time_ms >= timestamp_ms
        }

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture(autouse=True)
def kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic."""
    monkeypatch.setattr(checks, "TopicOffsets", Offsets)


def job(directory: Path, **source: Any) -> JobSettings:
    """A job on a new checkpoint with an old history."""
    return JobSettings(
        SourceSettings(KAFKA, **source),
        directory / "new",
        history=HistorySettings(directory / "history"),
    )


def write(
    directory: Path, minute: int, kind: Any = ROOT_KIND, totals: Any = CHANNEL
) -> None:
    """Write a row of the old job, for this minute of the day."""
    one = NumberedMinute(1, "town", MONDAY_MS + minute * MINUTE_MS, totals)
    history = ParquetHistory(directory / "history")
    history.write(tables_of(kind).minutes, [minute_row(one, kind.published)])
    (directory / "history" / LOCK).touch()


@pytest.mark.parametrize(
    "row",
    [(ROOT_KIND, CHANNEL), (MVDS.kind, GroupTotals())],
    ids=["channel", "group"],
)
def test_history_of_records_that_a_new_checkpoint_reads_is_found(
    row: tuple[Any, Any], tmp_path: Path
) -> None:
    """From the minute of the first record on; the finding names both times."""
    assert list(find_mixed_rows(job(tmp_path))) == []
    write(tmp_path, 9, *row)
    assert list(find_mixed_rows(job(tmp_path))) == []
    write(tmp_path, 10, *row)
    (finding,) = find_mixed_rows(job(tmp_path))
    assert finding == (
        f"history {tmp_path}/history has minutes up to 2026-08-10T00:10:00.000Z, and "
        "the new checkpoint begins with records of 2026-08-10T00:10:00.007Z, so rows "
        "of two jobs would mix: give another directory as --history"
    )
    assert check_history(job(tmp_path)) == ("history", (finding,))


def test_only_records_that_the_job_reads_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job may begin after the minutes of the history, or have begun already."""
    write(tmp_path, 19)
    later = MONDAY_MS + 15 * MINUTE_MS
    assert list(find_mixed_rows(job(tmp_path, start=later))) == []
    assert list(find_mixed_rows(job(tmp_path, start=later * 2))) == []
    write(tmp_path, 20)
    assert list(find_mixed_rows(job(tmp_path, start=later)))
    assert list(find_mixed_rows(job(tmp_path, start=LATEST))) == []
    log = read_batch_log(tmp_path)._replace(planned=0)
    monkeypatch.setattr(checks, "read_batch_log", lambda checkpoint: log)
    assert list(find_mixed_rows(job(tmp_path))) == []


def test_damaged_history_is_named(tmp_path: Path) -> None:
    """It is no defect of the monitor."""
    write(tmp_path, 10)
    day = day_directory(tmp_path / "history/channel_minutes", day_of(MONDAY_MS))
    file_path(day, 0).write_text("no rows")
    with pytest.raises(DamagedHistory):
        list(find_mixed_rows(job(tmp_path)))
    (finding,) = check_history(job(tmp_path)).findings
    assert f"{file_path(day, 0)} cannot be read" in finding


def test_rebuild_refuses_a_history_of_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it starts Spark; also if the file says that the live job starts later."""
    write(tmp_path, 10)
    monkeypatch.setattr(rebuild, "started_job", None)
    monkeypatch.chdir(tmp_path)
    flags = [
        *("--bootstrap", KAFKA.bootstrap, "--kafka-timeout", "1", "--start", "latest"),
        *("--checkpoint", "new", "--history", "history"),
    ]
    done = CliRunner().invoke(group, ["rebuild", *flags])
    assert done.exit_code == 2
    assert "rows of two jobs would mix: give another directory" in done.output
    assert read_batch_log(tmp_path / "new").planned is None
