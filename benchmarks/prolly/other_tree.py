"""The Prolly tree of the package `prollytree`, whose core is Rust: no protocol."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.prolly.range_based import Unavailable

VERSION: Final = "0.4.1"

_INSTALL_S: Final = 120
_PROBE_S: Final = 120


class Probed(msgspec.Struct):
    """One thing that was measured.

    Attributes:
        what: What.
        ms: Processor time; None if the result was wrong.
        note: What came out.
    """

    what: str
    ms: float | None
    note: str


def install(directory: Path) -> None:
    """Install the package into a directory.

    Raises:
        Unavailable: It cannot be had.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:"]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [*command, "--target", str(directory), f"prollytree=={VERSION}"],
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("pip took too long") from None
    if done.returncode:
        message = f"pip finds no prollytree {VERSION} for this machine"
        raise Unavailable(message)


def probe(
    package: Path, items: Path, lacked: Collection[int], store: Path | None
) -> list[Probed]:
    """Measure it.

    Args:
        package: Directory with the package.
        items: File of the packed keys of all messages.
        lacked: Numbers of the keys that one tree lacks.
        store: Directory for a versioned store; None to leave it out.

    Raises:
        Unavailable: It failed.
    """
    if store is not None:
        _make_repository(store)
    paths = os.pathsep.join((str(package), str(Path(__file__).parents[2])))
    command = [sys.executable, "-m", "benchmarks.prolly.prollytree_probe"]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            [*command, str(items), "-" if store is None else str(store)],
            env=os.environ | {"PYTHONPATH": paths},
            input=",".join(map(str, lacked)) + "\n",
            capture_output=True,
            text=True,
            timeout=_PROBE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("it took too long") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["without a word"]
        message = f"it failed: {lines[-1]}"
        raise Unavailable(message)
    return [msgspec.json.decode(line, type=Probed) for line in done.stdout.splitlines()]


def _make_repository(store: Path) -> None:
    git = shutil.which("git")
    if git is None:
        raise Unavailable("its versioned store needs git")
    store.mkdir()
    root = store.parent
    for arguments in (
        ["init", "--quiet"],
        ["config", "user.name", "benchmark"],
        ["config", "user.email", "benchmark@localhost"],
    ):
        subprocess.run([git, "-C", str(root), *arguments], check=True)  # noqa: S603
