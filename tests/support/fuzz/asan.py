"""Fuzzes the core compiled with AddressSanitizer: `make fuzz-asan`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from compiler.build import build
from compiler.c_compiler import find_compiler
from sds_core.compiled import SWITCH

ROOT = Path(__file__).parents[3]
_TREE = ROOT / "build" / "asan"
_FLAGS = ("-fsanitize=address", "-fno-omit-frame-pointer", "-g1")
_COPIED = ("compiler", "connectors", "dashboards", "docs", "sds_core", "streaming")
_LEFT_OUT = shutil.ignore_patterns("core", "__pycache__")


def make_tree() -> Path:
    """Copy the sources below build/, and compile the copy; returns its directory."""
    for name in (*_COPIED, "tests"):
        shutil.rmtree(_TREE / name, ignore_errors=True)
        # Only their directories of this name are left out: no module is called so.
        shutil.copytree(ROOT / name, _TREE / name, ignore=_LEFT_OUT)
    build(_TREE, _FLAGS)
    return _TREE


def environment(tree: Path) -> dict[str, str]:
    """Variables for a Python that runs the copy, and ends at an invalid access."""
    compiler = find_compiler().command
    found = subprocess.run(
        [*compiler, "-print-file-name=libasan.so"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        **os.environ,
        SWITCH: "compiled",
        "PYTHONPATH": str(tree),
        "LD_PRELOAD": found.stdout.strip(),
        # Python itself frees little when it ends. An abort makes it say where it was.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "PYTHONFAULTHANDLER": "1",
        # Python's own allocator hides from the sanitizer where an object ends.
        "PYTHONMALLOC": "malloc",
        # The sanitizer refuses libraries that look up names in themselves first.
        "PYCRYPTODOME_DISABLE_DEEPBIND": "1",
    }


def main() -> None:
    """Compile the copy, and fuzz it with the options of `tests.support.fuzz`."""
    tree = make_tree()
    # -P: otherwise the sources of this directory would come first.
    command = [sys.executable, "-P", "-m", "tests.support.fuzz", "--asan"]
    os.chdir(ROOT)
    os.execve(command[0], [*command, *sys.argv[1:]], environment(tree))  # noqa: S606


if __name__ == "__main__":
    main()
