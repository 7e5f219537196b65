"""Histories for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.history.parquet import ParquetHistory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the history lies; a name that a pattern of file names would not match."""
    return tmp_path / "a [!b] ** ?\\'"


@pytest.fixture
def history(directory: Path) -> ParquetHistory:
    """An empty history that puts more than two files together."""
    return ParquetHistory(directory, file_limit=2)
