"""Writes the history as Parquet files, partitioned by day (docs/history.md).

Only one process writes. Other processes may read at any time, because a file is
complete when it appears, and never changes. While a day is compacted, a reader may find
two copies of a row, which have the same key and the same ``told``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from connectors.history.errors import DamagedHistory
from connectors.history.layout import day_directory, day_of, days, file_path, files
from connectors.history.schema import TABLES, HistoryTable, Row
from connectors.storage.disk import make_directory, replacing

FILE_LIMIT = 48
QUIET_MS = 3_600_000
_GROUP_ROWS = 16_384
# Queries of users read `TABLE/*/*.parquet`, where `*` can stand for a name that begins
# with a dot.
_UNFINISHED = ".unfinished"
_EXPIRED = ".expired"
_FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(
        page_checksum_verification=True, pre_buffer=False
    )
)


class ParquetHistory:
    """Writes a history's rows to Parquet files, and compacts and removes the files.

    Only one thread of one process may use the object. Methods raise `OSError` if a file
    cannot be written, or a directory cannot be removed. The directory is created if it
    is missing. If a day has more than `file_limit` files, `compact` merges the files.
    `tables` are the tables to which `compact` and `expire` apply.
    """

    def __init__(
        self,
        directory: Path,
        file_limit: int = FILE_LIMIT,
        tables: Sequence[HistoryTable] = TABLES,
    ) -> None:
        self._directory = directory
        self._tables = tables
        self._file_limit = file_limit
        make_directory(directory)

    def write(self, table: HistoryTable, rows: Sequence[Row]) -> None:
        """Write each day's rows to a new file; all rows are durable after the call.

        If the call fails or the process crashes, the rows of some days may be missing.
        The caller must then write all rows again.
        """
        # Rows are converted first, so that nothing is written if a row is invalid.
        arrow = table.arrow(rows)
        dated = sorted((day_of(row[table.time]), n) for n, row in enumerate(rows))
        for day, numbers in groupby(dated, key=lambda one: one[0]):
            directory = day_directory(self._directory / table.name, day)
            make_directory(directory)
            with _new_file(directory, table) as writer:
                writer.write_table(arrow.take([number for _, number in numbers]))

    def compact(self, now_ms: int) -> None:
        """Merge the files of each day that is due; keep the latest row of each key.

        A day is due if it has more files than `file_limit`. A day with at least two
        files is also due if every file was written more than an hour before the wall
        time `now_ms`, Unix ms. The latest row of a key is the row with the highest
        `told`. A crash at any moment loses no row.

        Raises:
            DamagedHistory: A file cannot be read. The day of this file stays unchanged;
                all other days that are due are compacted.
        """
        damaged: list[DamagedHistory] = []
        for table in self._tables:
            self._remove_leftovers(table)
            for directory in days(self._directory / table.name).values():
                try:
                    if self._is_due(found := files(directory), now_ms):
                        _merge(directory, table, found)
                except DamagedHistory as error:
                    damaged.append(error)
        # If memory is not released, the allocators keep it until the next compaction.
        for pool in (pa.default_memory_pool(), pa.system_memory_pool()):
            pool.release_unused()
        if damaged:
            raise damaged[0]

    def expire(self, before: date) -> None:
        """Remove the files of all days before the day `before`."""
        for table in self._tables:
            self._remove_leftovers(table)
            for day, directory in days(self._directory / table.name).items():
                if day < before:
                    # The directory is moved before it is deleted, because a reader
                    # must not find it half-deleted: if a file with newer rows is
                    # missing, the reader takes older rows for the latest.
                    expired = directory.with_name(_EXPIRED)
                    expired.mkdir()
                    directory.rename(expired / directory.name)
                    shutil.rmtree(expired)

    def _is_due(self, found: Sequence[Path], now_ms: int) -> bool:
        if len(found) < 2:
            return False
        quiet_ms = now_ms - max(path.stat().st_mtime_ns for path in found) // 1_000_000
        return len(found) > self._file_limit or quiet_ms > QUIET_MS

    def _remove_leftovers(self, table: HistoryTable) -> None:
        # A crash may have left expired directories or unfinished files.
        directory = self._directory / table.name
        # Releases before 1.3 used the other names.
        for expired in (*directory.glob(_EXPIRED), *directory.glob(".day=*")):
            shutil.rmtree(expired)
        for name in (_UNFINISHED, ".*.parquet"):
            for unfinished in directory.glob(f"day=*/{name}"):
                unfinished.unlink()


def dataset_of(table: HistoryTable, paths: Iterable[Path]) -> ds.Dataset:
    """Return a dataset of a table's files, in the order of `paths`.

    Raises:
        DamagedHistory: A file lacks a field that must have values.
        pyarrow.ArrowException: A file is damaged.
        OSError: A file is damaged, or cannot be opened.
    """
    dataset = ds.dataset(
        [str(path) for path in paths],
        schema=table.schema,
        format=_FORMAT,
        filesystem=LocalFileSystem(),
    )
    required = {field.name for field in table.schema if not field.nullable}
    # PyArrow would return nulls, and queries would omit rows with nulls.
    for fragment in dataset.get_fragments():
        if lacking := required - {*fragment.physical_schema.names}:
            error = ValueError(f"it has no field {min(lacking)}")
            raise DamagedHistory(Path(fragment.path), error)
    return dataset


def batches(
    dataset: ds.Dataset, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in order; only one batch is in memory at a time."""
    yield from dataset.to_batches(
        columns=columns and [*columns],
        batch_size=_GROUP_ROWS,
        batch_readahead=0,
        fragment_readahead=0,
        use_threads=False,
    )


def check(paths: Iterable[Path]) -> None:
    """Raise `DamagedHistory` if a file cannot be read."""
    for path in paths:
        try:
            pq.read_table(path, page_checksum_verification=True, partitioning=None)
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise DamagedHistory(path, error) from error


def _merge(directory: Path, table: HistoryTable, old: Sequence[Path]) -> None:
    try:
        # A newer release may have written further fields.
        added = {
            field.name: field.with_nullable(True)
            for path in old
            for field in pq.read_schema(path)
            if field.name not in table.schema.names
        }
        schema = pa.schema([*table.schema, *added.values()], table.schema.metadata)
        table = replace(table, schema=schema)
        dataset = dataset_of(table, old)
        is_latest = _latest_rows(dataset, table.key)
        with _new_file(directory, table) as writer:
            for rows in _in_groups(_filtered(dataset, is_latest)):
                writer.write_table(rows)
    except (OSError, pa.ArrowException):
        check(old)
        raise
    for path in old:
        path.unlink()


def _latest_rows(dataset: ds.Dataset, key: Sequence[str]) -> np.ndarray:
    """Return a mask, shape (rows,): true for each key's row with the highest `told`."""
    repeated = _repeated_rows(dataset, key)
    is_latest = ~repeated
    if repeated.any():
        keys = pa.Table.from_batches(_filtered(dataset, repeated, [*key, "told"]))
        by_told = pc.sort_indices(keys, [("told", "ascending")])
        last = (
            keys.take(by_told)
            .append_column("row", by_told)
            .group_by([*key], use_threads=False)
            .aggregate([("row", "last")])
        )
        is_latest[np.flatnonzero(repeated)[last["row_last"].to_numpy()]] = True
    return is_latest


def _repeated_rows(dataset: ds.Dataset, key: Sequence[str]) -> np.ndarray:
    """Return a mask of the rows whose key has the same hash as another row's key.

    Most keys have only one row. Their rows are excluded by hash, because this takes
    less memory than grouping all rows by key.
    """
    found = batches(dataset, key)
    hashes = np.concatenate(
        [pd.util.hash_pandas_object(batch.to_pandas(), index=False) for batch in found]
    )
    return pd.Series(hashes).duplicated(keep=False).to_numpy()


def _filtered(
    dataset: ds.Dataset, mask: np.ndarray, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    begin = 0
    for batch in batches(dataset, columns):
        end = begin + len(batch)
        yield batch.filter(pa.array(mask[begin:end]))
        begin = end


def _in_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    group: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        group.append(batch)
        rows += len(batch)
        if rows >= _GROUP_ROWS:
            yield pa.Table.from_batches(group)
            group, rows = [], 0
    if group:
        yield pa.Table.from_batches(group)


@contextmanager
def _new_file(directory: Path, table: HistoryTable) -> Iterator[pq.ParquetWriter]:
    found = files(directory)
    # Within a day, each file number is used only once. If a reader's list of files is
    # outdated, each file in the list is therefore either unchanged or missing.
    path = file_path(directory, int(found[-1].stem) + 1 if found else 0)
    with (
        replacing(path, path.with_name(_UNFINISHED)) as file,
        pq.ParquetWriter(
            file, table.schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        yield writer
