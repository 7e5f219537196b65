"""Checks of the machine: memory, disk space and file descriptors."""

from __future__ import annotations

import os
import re
import resource
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path

import psutil

from streaming.doctor.findings import Checked, checked
from streaming.settings import JobSettings

_MIB = 1024**2
_GIB = 1024**3

_HEAP_BYTES = _GIB
"""Spark's default for the maximum heap of the JVM."""

_BESIDE_HEAP_BYTES = _GIB
"""Memory that a job needs in addition to the heap (docs/sizing.md, Memory).

RocksDB, the driver's Python process and Python workers use it.
"""

_STATE_BYTES = _GIB
"""Minimum free space for the checkpoint, and for the history.

This space is enough for the data of a few channels over some days.
"""

_SCRATCH_BYTES = 256 * _MIB
"""Minimum free space for temporary files: the JVM's libraries and shuffle data."""

_DESCRIPTORS = 1_024
"""Minimum hard limit on the number of files that a process can open.

Connections of HTTP clients need up to 100, Spark and RocksDB need more.
"""

_CGROUP = Path("/sys/fs/cgroup")
"""Directory of the file ``memory.max``, which has the memory limit.

In a container, this is the limit of the container.
"""


def check_machine(settings: JobSettings, is_cluster: bool) -> Iterator[Checked]:
    """Check quickly whether the machine has what a job needs, except Java.

    Writes nothing.
    """
    if not is_cluster:
        # On a cluster, tasks use the memory of the executors' machines.
        yield checked("memory", find_short_memory)
    history = settings.history
    places = {"--checkpoint": settings.checkpoint}
    if history is not None and settings.checkpoint not in history.directory.parents:
        places["--history"] = history.directory
    yield checked("disk", partial(find_full_disks, places))
    yield checked("file descriptors", find_few_descriptors)


def find_short_memory(cgroup: Path = _CGROUP) -> Iterator[str]:
    """Yield a finding if less memory is free than a job needs."""
    try:
        heap = _heap_bytes(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    except ValueError as error:
        yield f"PYSPARK_SUBMIT_ARGS cannot be read ({error}): close its quotes"
        return
    needed = heap + _BESIDE_HEAP_BYTES
    free = psutil.virtual_memory().available
    # The whole limit counts as free: the memory that a container uses includes cached
    # files, which the kernel can drop.
    if (limit := _number_in(cgroup / "memory.max")) is not None:
        free = min(free, limit)
    if free < needed:
        yield (
            f"{free // _MIB:,} MiB of memory are free, and a job takes "
            f"{needed // _MIB:,} MiB with its heap of {heap // _MIB:,} MiB: stop other "
            "programs, raise the limit of the container, or set another --driver-memory"
            " in PYSPARK_SUBMIT_ARGS"
        )


def find_full_disks(
    places: Mapping[str, Path], scratch: Path | None = None
) -> Iterator[str]:
    """Yield a finding for each place without enough free space.

    `places` has, for each option, the directory that it sets; the directory need not
    exist. `scratch` is the directory of temporary files, by default the one that Python
    uses.

    Raises:
        OSError: Python finds no directory for temporary files.
    """
    for option, place in places.items():
        yield from _full_disk(place, option, _STATE_BYTES)
    scratch = scratch or Path(tempfile.gettempdir())
    yield from _full_disk(scratch, "TMPDIR", _SCRATCH_BYTES)
    if os.statvfs(scratch).f_flag & os.ST_NOEXEC:
        yield (
            f"{scratch} does not allow the execution of libraries (noexec): set TMPDIR "
            "to a directory that does"
        )


def _full_disk(place: Path, option: str, needed: int) -> Iterator[str]:
    directory = next(one for one in (place, *place.parents) if one.exists())
    free = shutil.disk_usage(directory).free
    if free < needed:
        yield (
            f"{free // _MIB:,} MiB are free for {place}, and {needed // _MIB:,} MiB are"
            f" needed: free space there, or set {option} to another directory"
        )


def find_few_descriptors() -> Iterator[str]:
    """Yield a finding if a process cannot open as many files as a job needs."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _DESCRIPTORS:
        yield (
            f"a process may open {hard:,} files, and a job needs {_DESCRIPTORS:,}: "
            "raise the hard limit (ulimit -Hn, or LimitNOFILE= of systemd)"
        )


def _heap_bytes(arguments: str) -> int:
    words = re.split(r"\s+|=", " ".join(shlex.split(arguments)))
    for name, value in pairwise(words):
        size = re.fullmatch(r"(\d+)([kmgt]?)b?", value.lower())
        if name in ("--driver-memory", "spark.driver.memory") and size is not None:
            # For Spark, a number without a unit is in MiB.
            return int(size[1]) << 10 * ("kmgt".index(size[2] or "m") + 1)
    return _HEAP_BYTES


def _number_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
