"""Compiles the core of this source tree: `python -m compiler`.

Exit codes: 0 if the core is compiled, 1 if a source cannot be compiled, 3 if no C
compiler works.
"""

from __future__ import annotations

import importlib
import shlex
import subprocess
import sys

from compiler import ROOT, group
from compiler.build import build, is_current
from compiler.c_compiler import (
    CompilationFailed,
    Compiler,
    CompilerMissing,
    HeadersMissing,
    find_compiler,
)
from compiler.derive import NotCompilable
from sds_core.compiled import MODULES

NO_COMPILER = 3
_UNLESS = "the rules run interpreted, which takes more CPU time, until a compiler is"


def main() -> None:
    """Compile the core, unless it is up to date."""
    if is_current(ROOT):
        return
    try:
        compiler = _find_compiler()
        made = build(ROOT, compiler=compiler)
    except CompilerMissing as error:
        _say(f"{error}: {_UNLESS} installed and `make core` has run")
        raise SystemExit(NO_COMPILER) from None
    except (CompilationFailed, NotCompilable) as error:
        _say(str(error))
        raise SystemExit(1) from None
    name = shlex.join(compiler.command)
    _say(f"compiled {len(MODULES)} modules of the rules with {name} into {made}")


def _find_compiler() -> Compiler:
    try:
        return find_compiler()
    except HeadersMissing:
        raise
    except CompilerMissing as error:
        _say(f"{error}; fetching one: the package ziglang")
        if not _fetch_zig():
            message = f"{error}, and the package ziglang cannot be installed"
            raise CompilerMissing(message) from None
        importlib.invalidate_caches()
        return find_compiler()


def _fetch_zig() -> bool:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "1"]
    done = subprocess.run([*pip, *group("zig")], check=False)  # noqa: S603
    return done.returncode == 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


main()
