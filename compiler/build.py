"""Compiles the modules of a source tree into a directory beside them."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from compiler.c_compiler import (
    CompilationFailed,
    Compiler,
    CompilerMissing,
    find_compiler,
)
from compiler.derive import derive
from compiler.tree import Tree
from sds_core.compiled import MODULES, SHARED, TAG, directory, find

FLAGS = ("-O1", "-g0", "-DNDEBUG", "-fwrapv", "-fno-strict-aliasing")
"""Flags of the C compiler. With -O2 instead of -O1, the core would be five percent
faster, but compilation would take 2.5 times as long. With -fwrapv, signed integers wrap
around. Cython's structures need -fno-strict-aliasing."""

_BUILDER = "builder"
"""Name of a file in the directory of the compiled core. The file holds a hash of the
sources of package `compiler`, Cython's version and the C compiler's flags."""

_WHOLE = "whole"
"""Name of a file in the build directory. The file is missing during a build and after
an interrupted build. If it is missing, the next build starts from scratch, because the
directory may have incomplete files that are newer than their sources."""


def is_current(root: Path, flags: Sequence[str] = ()) -> bool:
    """Return whether a tree's compiled core is up to date.

    The core is out of date if the tree's sources, package `compiler`, Cython or the
    flags have changed since the build.
    """
    found = find(str(root))
    try:
        return found is not None and Path(found, _BUILDER).read_text() == _key(
            *_own_sources(), *flags
        )
    except (OSError, CompilerMissing):
        return False


def build(
    root: Path,
    flags: Sequence[str] = (),
    *,
    compiler: Compiler | None = None,
    jobs: int | None = None,
) -> Path:
    """Compile a source tree's core if it is out of date; return the core's directory.

    If several processes build the same tree, one waits for the other. Python never
    loads files of an interrupted build. By default, `find_compiler` selects the C
    compiler. `jobs` is the number of parallel processes, by default the number of CPU
    cores.

    Raises:
        compiler.c_compiler.CompilerMissing: No C compiler works, or Python's headers or
            Cython are missing.
        compiler.c_compiler.CompilationFailed: The C compiler refuses a source.
        compiler.derive.NotCompilable: Compiling would change the behaviour of a module.
        Cython.Compiler.Errors.CompileError: Cython refuses a source.
        RuntimeError: The sources changed during the build.
    """
    with _alone(root / "build"):
        target = Path(directory(str(root)))
        if not is_current(root, flags):
            compiler = compiler or find_compiler()
            library = _make(root, flags, compiler, jobs or os.cpu_count() or 1)
            _install(library, target, _key(*_own_sources(), *flags))
    return target


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    place.mkdir(exist_ok=True)
    with (place / "core.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _own_sources() -> list[str]:
    return [path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))]


def _key(*parts: str) -> str:
    try:
        text = "\0".join((*parts, version("cython"), *FLAGS))
    except PackageNotFoundError:
        raise CompilerMissing("Cython is missing (pip install --group core)") from None
    return sha256(text.encode()).hexdigest()[:16]


def _make(root: Path, flags: Sequence[str], compiler: Compiler, jobs: int) -> Path:
    """Compile changed modules; return the directory of all compiled modules.

    Each combination of Cython version, Python version, compiler command and flags has
    its own directory.
    """
    # Cython loads slowly, so it is imported only for a build.
    from compiler import cython_step

    name = _key(*compiler.command, *flags, str(cython_step.DIRECTIVES)) + TAG
    work = root / "build" / "core" / name
    if not (work / _WHOLE).exists():
        shutil.rmtree(work, ignore_errors=True)
    before = directory(str(root))
    _write_sources(root, work)
    if directory(str(root)) != before:
        message = "the sources changed while they were read: compile them again"
        raise RuntimeError(message)
    library = work / "lib"
    library.mkdir(exist_ok=True)
    (work / _WHOLE).unlink(missing_ok=True)

    def make_module(name: str) -> None:
        source = work / (name.replace(".", "/") + ".c")
        target = library / f"{name}{TAG}.so"
        if not target.exists() or target.stat().st_mtime <= source.stat().st_mtime:
            compiler.make_module(source, target, (*FLAGS, *flags))

    try:
        cython_step.make_c_sources(work, MODULES, SHARED, jobs)
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(make_module, (*MODULES, SHARED)))
    except (cython_step.CompileError, CompilationFailed):
        # After these errors, all files in `work` are complete, so the next build can
        # reuse the files.
        (work / _WHOLE).touch()
        raise
    (work / _WHOLE).touch()
    return library


def _write_sources(root: Path, work: Path) -> None:
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
    """Write a file only if its text changes, so that Cython skips unchanged files."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _install(library: Path, target: Path, builder: str) -> None:
    target.parent.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(TAG, dir=target.parent))
    made.chmod(0o755)
    for name in (*MODULES, SHARED):
        shutil.copy(library / f"{name}{TAG}.so", made)
    (made / _BUILDER).write_text(builder)
    for old in target.parent.glob(f"*{TAG}"):
        if old != made:
            shutil.rmtree(old)
    made.rename(target)
