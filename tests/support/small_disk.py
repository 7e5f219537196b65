"""A real file system that is soon full, and a quota that is used up."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_QUOTA = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_used_up(int file) {
    char link[64], path[4096];
    const char *directory = getenv("USED_UP");
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = directory ? readlink(link, path, sizeof path - 1) : -1;
    if (length < 0) return 0;
    path[length] = 0;
    return !strncmp(path, directory, strlen(directory));
}

#define LIMITED(name, arguments, values) \\
    ssize_t name arguments { \\
        ssize_t (*real) arguments = dlsym(RTLD_NEXT, #name); \\
        if (is_used_up(file)) { errno = EDQUOT; return -1; } \\
        return real values; \\
    }
LIMITED(write, (int file, const void *data, size_t size), (file, data, size))
LIMITED(pwrite, (int file, const void *data, size_t size, off_t at),
        (file, data, size, at))
LIMITED(pwrite64, (int file, const void *data, size_t size, off_t at),
        (file, data, size, at))
"""
"""Writes to files below the directory USED_UP fail as with a quota, for which few
kernels of test machines have a file system."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")


@contextmanager
def small_disk(place: Path, size: str, *options: str) -> Iterator[Path]:
    """Mount a file system in memory while the block runs; gives its directory.

    Args:
        place: The directory; made.
        size: Its size, as ``2m``.
        options: Further options of the mount.
    """
    place.mkdir()
    what = ",".join((f"size={size}", *options))
    subprocess.run(["mount", "-t", "tmpfs", "-o", what, "none", place], check=True)
    try:
        yield place
    finally:
        # Lazily: a process that a test has killed may end a moment later.
        subprocess.run(["umount", "--lazy", place], check=True)


def quota_library(directory: Path) -> Path:
    """Compile a library for LD_PRELOAD that limits a directory; skip without C."""
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("there is no C compiler")
    source, library = directory / "quota.c", directory / "quota.so"
    source.write_text(_QUOTA)
    command = [compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True)
    return library


def fill(directory: Path, left: int = 0) -> None:
    """Leave so many bytes, or none, to other files."""
    with (directory / "filler").open("wb", buffering=0) as file:
        free = os.statvfs(directory)
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - left)))
