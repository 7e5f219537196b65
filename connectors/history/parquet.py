"""The history in Parquet, partitioned by day.

One process writes. Others may read at any moment: a file is there whole or not at
all, and is never changed. While files of a day are put together, a reader may find
rows twice; those with one key and one ``told`` are the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from connectors.history.errors import DamagedHistory
from connectors.history.layout import day_directory, day_of, days, file_path, files
from connectors.history.schema import TABLES, HistoryTable, Row

FILE_LIMIT = 48
"""Files of one day and table, unless told otherwise."""
QUIET_MS = 3_600_000
"""After so long without a new file a day is taken to be complete."""
_GROUP_ROWS = 16_384
_FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(
        page_checksum_verification=True
    )
)


class ParquetHistory:
    """Writes rows, and keeps the files few. For one process, one call at a time.

    Args:
        directory: Of the history; it is made if it is missing.
        file_limit: A day with more files has them put together.
    """

    def __init__(self, directory: Path, file_limit: int = FILE_LIMIT) -> None:
        self._directory = directory
        self._file_limit = file_limit
        _make_directory(directory)

    def write(self, table: HistoryTable, rows: Sequence[Row]) -> None:
        """Add rows, one file a day; all are durable when this returns.

        After a crash, or an error, some days may have their rows and others not:
        write all of them again.

        Raises:
            OSError: They cannot be written.
        """
        # What is wrong with a row is to show before any is written.
        arrow = table.arrow(rows)
        dated = sorted((day_of(row[table.time]), n) for n, row in enumerate(rows))
        for day, numbers in groupby(dated, key=lambda one: one[0]):
            directory = day_directory(self._directory / table.name, day)
            _make_directory(directory)
            with _new_file(directory, table) as writer:
                writer.write_table(arrow.take([number for _, number in numbers]))

    def compact(self, now_ms: int) -> None:
        """Put the files of a day together, of each key the row that was told last.

        So are the days with more files than the limit, and those with more than one
        to which nothing was added for an hour. A crash at any moment loses no row.

        Args:
            now_ms: Wall time, Unix ms.

        Raises:
            DamagedHistory: A file cannot be read. Its day stays as it is, the others
                are done.
            OSError: A file cannot be written.
        """
        damaged: list[DamagedHistory] = []
        for table in TABLES:
            self._remove_leftovers(table)
            for directory in days(self._directory / table.name).values():
                try:
                    if self._is_due(found := files(directory), now_ms):
                        _put_together(directory, table, found)
                except DamagedHistory as error:
                    damaged.append(error)
        if damaged:
            raise damaged[0]

    def expire(self, before: date) -> None:
        """Remove all that lies in days before a day.

        Raises:
            OSError: It cannot be removed.
        """
        for table in TABLES:
            self._remove_leftovers(table)
            for day, directory in days(self._directory / table.name).items():
                if day < before:
                    # Gone as a whole: without its newest file, older rows would count.
                    hidden = directory.rename(directory.with_name(f".{directory.name}"))
                    shutil.rmtree(hidden)

    def _is_due(self, found: Sequence[Path], now_ms: int) -> bool:
        if len(found) < 2:
            return False
        quiet_ms = now_ms - max(path.stat().st_mtime_ns for path in found) // 1_000_000
        return len(found) > self._file_limit or quiet_ms > QUIET_MS

    def _remove_leftovers(self, table: HistoryTable) -> None:
        """Remove what a crash left half done."""
        directory = self._directory / table.name
        for expired in directory.glob(".day=*"):
            shutil.rmtree(expired)
        for unfinished in directory.glob("day=*/.*.parquet"):
            unfinished.unlink()


def dataset_of(table: HistoryTable, paths: Iterable[Path]) -> ds.Dataset:
    """Files of a table, in this order, with the fields that it has today."""
    return ds.dataset(
        [str(path) for path in paths],
        schema=table.schema,
        format=_FORMAT,
        filesystem=LocalFileSystem(),
    )


def check(paths: Iterable[Path]) -> None:
    """Read files for nothing.

    Raises:
        DamagedHistory: One of them cannot be read.
    """
    for path in paths:
        try:
            pq.read_table(path, page_checksum_verification=True, partitioning=None)
        except (OSError, pa.ArrowException) as error:
            raise DamagedHistory(path, error) from error


def _put_together(directory: Path, table: HistoryTable, old: Sequence[Path]) -> None:
    try:
        dataset = dataset_of(table, old)
        counts = _told_last(dataset, table.key)
        with _new_file(directory, table) as writer:
            for rows in _in_groups(_chosen(dataset, counts)):
                writer.write_table(rows)
    except (OSError, pa.ArrowException):
        check(old)
        raise
    for path in old:
        path.unlink()


def _told_last(dataset: ds.Dataset, key: Sequence[str]) -> np.ndarray:
    """Which rows count, one for each key: shape (rows,), bool."""
    keys = dataset.to_table(columns=[*key, "told"], use_threads=False)
    by_told = pc.sort_indices(keys, [("told", "ascending")])
    last = (
        keys.take(by_told)
        .append_column("row", by_told)
        .group_by([*key], use_threads=False)
        .aggregate([("row", "last")])
    )
    counts = np.zeros(len(keys), bool)
    counts[last["row_last"].to_numpy()] = True
    return counts


def _chosen(dataset: ds.Dataset, counts: np.ndarray) -> Iterator[pa.RecordBatch]:
    begin = 0
    for batch in dataset.to_batches(batch_size=_GROUP_ROWS, use_threads=False):
        end = begin + len(batch)
        yield batch.filter(pa.array(counts[begin:end]))
        begin = end


def _in_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Row groups that are neither tiny nor a whole day in memory."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += len(batch)
        if rows >= _GROUP_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


@contextmanager
def _new_file(directory: Path, table: HistoryTable) -> Iterator[pq.ParquetWriter]:
    """A file that is there, whole and durable, when the block has ended."""
    found = files(directory)
    # Numbers are not used again while their day lasts: a reader that has an old list
    # finds a file as it was, or none.
    path = file_path(directory, int(found[-1].stem) + 1 if found else 0)
    unfinished = path.with_name(f".{path.name}")
    with unfinished.open("wb") as file:
        with pq.ParquetWriter(
            file, table.schema, compression="zstd", write_page_checksum=True
        ) as writer:
            yield writer
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
    _sync(directory)


def _make_directory(directory: Path) -> None:
    if not directory.is_dir():
        _make_directory(directory.parent)
        directory.mkdir(exist_ok=True)
        _sync(directory.parent)


def _sync(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
