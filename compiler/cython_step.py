"""Translates the output of `derive` to C with Cython."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler.Errors import CompileError
from setuptools import Extension

__all__ = ["CompileError", "make_c_sources"]

DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": True,
    # Compiled functions behave like built-in functions. The core needs no feature that
    # only Python functions have.
    "binding": False,
    "infer_types": None,
    "boundscheck": True,
    "wraparound": True,
    "cdivision": False,
    "initializedcheck": True,
    "nonecheck": True,
    "embedsignature": False,
    "auto_pickle": False,
}
"""Options of Cython. All run-time checks in this list are on, because the core reads
untrusted bytes."""


def make_c_sources(work: Path, modules: Iterable[str], shared: str, jobs: int) -> None:
    """Write the C source of each changed module beside its Python source in `work`.

    `shared` is the name of a generated module, which contains Cython's code that all
    modules use. `jobs` is the number of processes that run at the same time.

    Raises:
        CompileError: Cython refuses a source.
    """
    here = Path.cwd()
    try:
        # Cython derives the names of its files from their paths relative to the working
        # directory.
        os.chdir(work)
        cythonize(  # type: ignore[no-untyped-call]
            [Extension(name, [name.replace(".", "/") + ".py"]) for name in modules],
            nthreads=jobs,
            quiet=True,
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=shared,
        )
        path = Path(shared.replace(".", "/") + ".c")
        if not path.exists():
            subprocess.run(  # noqa: S603
                [sys.executable, "-m", "cython", "generate-shared", str(path)],
                check=True,
            )
    finally:
        os.chdir(here)
