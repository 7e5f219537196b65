"""Compiles the modules of a source tree into a directory beside them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

from compiler.derive import derive
from compiler.tree import Tree
from sds_core.compiled import MODULES, SHARED, directory

DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": True,
    # Python's own objects cannot tell these functions from compiled ones.
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
"""All checks stay on, since the core reads bytes from outside."""

FLAGS = "-O1 -g0 -fwrapv -fno-strict-aliasing"
"""-O2 takes 2.5 times as long and gains five percent. Signed integers wrap around as in
the processor; Cython's structures need the rest."""


def build(root: Path, flags: Sequence[str] = (), *, jobs: int | None = None) -> Path:
    """Compile the core of a source tree.

    Args:
        root: The tree.
        flags: Further flags of the compiler and the linker.
        jobs: Compilers at once; None for one for each core.

    Returns:
        Directory of the compiled form, where `sds_core.compiled` finds it.

    Raises:
        compiler.derive.NotCompilable: A module uses what compiling would change.
        distutils.errors.CCompilerError: There is no compiler, or it fails.
    """
    work = root / "build" / "core"
    _write_sources(root, work)
    target = Path(directory(str(root)))
    jobs = jobs or os.cpu_count() or 1
    here = Path.cwd()
    try:
        # Cython names its files by their path from here.
        os.chdir(work)
        extensions = cythonize(  # type: ignore[no-untyped-call]
            [_extension(name, ".py", flags) for name in MODULES],
            nthreads=jobs,
            quiet=True,
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
        )
        shared = _extension(SHARED, ".c", flags)
        if not Path(*shared.sources).exists():
            subprocess.run(  # noqa: S603
                [sys.executable, "-m", "cython", "generate-shared", *shared.sources],
                check=True,
            )
        extensions.append(shared)
        command = build_ext(Distribution({"ext_modules": extensions}))
        command.build_lib, command.build_temp = "lib", "objects"
        command.parallel = jobs
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(here)
    _install(work / "lib", target)
    return target


def _extension(name: str, suffix: str, flags: Sequence[str]) -> Extension:
    return Extension(
        name,
        [name.replace(".", "/") + suffix],
        extra_compile_args=[*shlex.split(FLAGS), *flags],
        extra_link_args=list(flags),
    )


def _write_sources(root: Path, work: Path) -> None:
    """Derive what changed since the last build."""
    tree = Tree(root)
    modules = [found for name in MODULES if (found := tree.module(name)) is not None]
    packages = {parent for name in MODULES for parent in Path(*name.split(".")).parents}
    for package in packages - {Path()}:
        _write(work / package / "__init__.py", "")
    for module in modules:
        derived = derive(tree, module, modules)
        path = work.joinpath(*module.name.split("."))
        _write(path.with_suffix(".pxd"), derived.declarations)
        _write(path.with_suffix(".py"), derived.source)


def _write(path: Path, text: str) -> None:
    """Write a file unless it has this text: what is unchanged is not compiled again."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _install(library: Path, target: Path) -> None:
    """Put the compiled form in its place as a whole, and remove older ones."""
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as directory:
        made = Path(directory) / "made"
        made.mkdir()
        for name in (*MODULES, SHARED):
            suffix = EXTENSION_SUFFIXES[0]
            path = library.joinpath(*name.split("."))
            shutil.copy(f"{path}{suffix}", made / f"{name}{suffix}")
        for old in target.parent.iterdir():
            if old != Path(directory):
                shutil.rmtree(old)
        made.rename(target)


def main() -> None:
    """Compile the core of this tree."""
    made = build(Path(__file__).parent.parent)
    sys.stdout.write(f"compiled {len(MODULES)} modules into {made}\n")
