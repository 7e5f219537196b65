"""Finds a C compiler on the machine or in the package `ziglang`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ZIG = (sys.executable, "-m", "ziglang", "cc")

# By default, Zig compiles for the processor of this machine, and adds a sanitizer. A
# compiled module must run on every processor of this architecture.
_ZIG_FLAGS = ("-mcpu=baseline", "-fno-sanitize=undefined")

_LINKED = (
    ("-bundle", "-undefined", "dynamic_lookup")
    if sys.platform == "darwin"
    else ("-shared", "-fPIC")
)
_INCLUDED = sorted({sysconfig.get_path("include"), sysconfig.get_path("platinclude")})

_PROBE = "#include <Python.h>\n#include <string.h>\nint probe(void) { return 0; }\n"
_LONGEST_REASON = 200


class CompilerMissing(Exception):
    """No compiler can build a module for this Python."""


class HeadersMissing(CompilerMissing):
    """Python's headers are missing; installing a C compiler does not add them."""


class CompilationFailed(Exception):
    """A compiler refuses a source; `output` is the compiler's message."""

    def __init__(self, source: Path, output: str) -> None:
        super().__init__(f"{source.name} cannot be compiled:\n{output.strip()}")
        self.output = output


class Compiler(NamedTuple):
    """A C compiler; `command` is its command line without flags."""

    command: tuple[str, ...]

    def make_module(self, source: Path, target: Path, flags: Sequence[str]) -> None:
        """Compile and link the C file `source` to the Python module `target`.

        After an error, `target` is unchanged.

        Raises:
            CompilationFailed: The compiler refuses the file.
        """
        made = target.with_suffix(".made")
        included = (f"-I{directory}" for directory in _INCLUDED)
        zig = _ZIG_FLAGS if self.command == ZIG else ()
        done = subprocess.run(  # noqa: S603
            [
                *(*self.command, *_LINKED, *included, *zig, *flags),
                *(str(source), "-o", str(made)),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CompilationFailed(source, done.stderr or done.stdout)
        made.replace(target)


def find_compiler() -> Compiler:
    """Return the first C compiler that works.

    If the environment variable `CC` is set, its compiler is tried first; otherwise cc,
    gcc and clang are tried. The package `ziglang` is tried last.

    Raises:
        CompilerMissing: No C compiler works, or Python's headers are missing.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if not any(Path(directory, "Python.h").exists() for directory in _INCLUDED):
        message = (
            f"Python.h of Python {version} is missing (Debian: apt-get install "
            "python3-dev)"
        )
        raise HeadersMissing(message)
    reasons = []
    for command in _candidates():
        compiler = Compiler(command)
        reason = _reason_against(compiler)
        if reason is None:
            return compiler
        reasons.append(f"{shlex.join(command)}: {reason}")
    message = f"no C compiler that works ({'; '.join(reasons) or 'none in PATH'})"
    raise CompilerMissing(message)


def _candidates() -> Iterator[tuple[str, ...]]:
    chosen = shlex.split(os.environ.get("CC", ""))
    if chosen:
        yield tuple(chosen)
    else:
        yield from ((name,) for name in ("cc", "gcc", "clang") if shutil.which(name))
    if find_spec("ziglang") is not None:
        yield ZIG


def _reason_against(compiler: Compiler) -> str | None:
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "probe.c")
        source.write_text(_PROBE)
        try:
            compiler.make_module(source, source.with_suffix(".so"), ())
        except CompilationFailed as error:
            return " ".join(error.output.split())[:_LONGEST_REASON]
        except OSError as error:
            return str(error.strerror)
    return None
