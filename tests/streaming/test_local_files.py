"""Files that Spark's JVM writes on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_files_keep_the_permissions_that_they_are_made_with(
    spark: SparkSession, tmp_path: Path
) -> None:
    """So no process of `chmod` is started: Hadoop would start one for each file."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no public way
    path = tmp_path / "file"
    path.touch(0o600)
    path.chmod(0o600)
    hadoop = jvm.org.apache.hadoop.fs
    settings: Any = spark._jsc  # noqa: SLF001 - no public way
    files = hadoop.Path(path.as_uri()).getFileSystem(settings.hadoopConfiguration())
    everything = hadoop.permission.FsPermission("777")
    files.setPermission(hadoop.Path(path.as_uri()), everything)
    assert path.stat().st_mode & 0o777 == 0o600
    made = hadoop.Path(f"{path.as_uri()}-made")
    files.create(made).close()
    mask = os.umask(0o022)
    os.umask(mask)
    assert Path(f"{path}-made").stat().st_mode & 0o777 == 0o666 & ~mask
