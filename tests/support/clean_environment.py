"""Distributions as a release has them, in virtual environments with nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from sds_core.compiled import SWITCH
from tests.support.deployment import ROOT


def build(project: Path, directory: Path) -> Path:
    """Build source distribution and, from it, the wheel, both into a directory.

    Args:
        project: Directory of the project, from the root of the repository.
        directory: Empty; it gets the files of the repository too.

    Returns:
        Path of the wheel.
    """
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
    source = directory / "source"
    for name in names.decode().split("\0")[:-1]:
        path, target = ROOT / name, source / name
        if path.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target, follow_symlinks=False)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "build", "--no-isolation"),
            *("--outdir", str(directory), str(source / project)),
        ],
        env=os.environ | {SWITCH: "interpreted"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(directory.glob("*.tar.gz"))) == 1
    (wheel,) = directory.glob("*-py3-none-any.whl")
    return wheel


def install(wheel: Path, requirements: Iterable[str], directory: Path) -> Path:
    """Install a wheel in a new virtual environment; return its Python.

    What it requires is linked, so that the test needs no package index.
    """
    venv.create(directory, with_pip=False)
    (site,) = directory.glob("lib/python*/site-packages")
    for required in with_theirs(requirements).values():
        for name in {file.parts[0] for file in required.files or []} - {".."}:
            target = Path(str(required.locate_file(name)))
            if not (site / name).exists():
                (site / name).symlink_to(target)
    python = directory / "bin/python"
    quiet = ("--no-deps", "--quiet", "--disable-pip-version-check", "--no-index")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", f"--python={python}", "install"),
            *(*quiet, str(wheel)),
        ],
        check=True,
        timeout=200,
    )
    return python


def run(
    program: Path, *words: str, directory: Path, timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a program of a new environment, away from the sources of this one."""
    without_ours = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [str(program), *words],
        cwd=directory,
        env=without_ours,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


def name_of(requirement: str) -> str:
    """The distribution that a requirement names."""
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None
    return match[0]


def with_theirs(requirements: Iterable[str]) -> dict[str, Distribution]:
    """The installed distributions of requirements, and what those require in turn."""
    installed: dict[str, Distribution] = {}
    todo = [name_of(requirement) for requirement in requirements]
    while todo:
        name = todo.pop()
        if name not in installed:
            try:
                installed[name] = distribution(name)
            except PackageNotFoundError:
                # For another platform: pip would not install it here either.
                continue
            theirs = installed[name].requires or []
            todo += [name_of(one) for one in theirs if "extra ==" not in one]
    return installed
