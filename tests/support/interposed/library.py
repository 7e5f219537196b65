"""Processes whose calls about files can be made to fail, and are written down.

Their library of C has another one before it, made from `disk.c` or
`clock.c`. No part of the program knows.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from compiler.c_compiler import CompilerMissing, find_compiler

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def made_library(name: str, directory: Path) -> Path:
    """Compile a library, `disk` or `clock`; skips the test where that is impossible."""
    if sys.platform != "linux":
        pytest.skip("only Linux has these names of calls")
    try:
        compiler = find_compiler()
    except CompilerMissing as error:
        pytest.skip(str(error))
    library, source = directory / f"{name}.so", Path(__file__).with_name(f"{name}.c")
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-U_FORTIFY_SOURCE"]
    command = [*compiler.command, *options, "-o", str(library), str(source)]
    subprocess.run([*command, "-lpthread", "-ldl"], check=True)
    return library


@contextmanager
def preloaded(library: Path) -> Iterator[None]:
    """Have all processes that start in the block load the library first."""
    before = os.environ.get("LD_PRELOAD")
    os.environ["LD_PRELOAD"] = str(library)
    try:
        yield
    finally:
        if before is None:
            del os.environ["LD_PRELOAD"]
        else:
            os.environ["LD_PRELOAD"] = before


def in_process(
    library: Path,
    function: Callable[_Parameters, _Result],
    *args: _Parameters.args,
    **kwargs: _Parameters.kwargs,
) -> _Result:
    """Call a function in a process with the library; returns what it returns."""
    with (
        preloaded(library),
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
    ):
        return pool.submit(function, *args, **kwargs).result()


class Calls:
    """Counts the calls that change files, of this process; see `failing`."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def failing(
    under: Path, at: int = 0, number: int = 0, lasts: bool = False, log: str = ""
) -> Iterator[Calls]:
    """Count calls about files below a directory while the block runs.

    Args:
        under: The directory.
        at: Number of the call that fails, from 1; 0 for none.
        number: The error.
        lasts: Whether all after it fail too.
        log: File that gets what is changed; empty for none.
    """
    library = ctypes.CDLL(None)
    begun = (os.fsencode(under), ctypes.c_long(at), number, lasts, os.fsencode(log))
    library.interposed_begin(*begun)
    library.interposed_end.restype = ctypes.c_long
    calls = Calls()
    try:
        yield calls
    finally:
        calls.count = library.interposed_end()
