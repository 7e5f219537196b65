"""docs/install.md, and what installing the project prints."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from sysconfig import get_platform

import pytest

from compiler import backend
from compiler.build import build
from sds_core.compiled import SWITCH
from tests.support.deployment import ROOT

PAGE = ROOT / "docs/install.md"
UNITS = sorted((ROOT / "deploy").glob("*.service"))
INSTALLED = ("compiler", "sds_core", "connectors", "streaming", "dashboards")
PLATFORM = get_platform().replace("-", "_")
FILES = ("pyproject.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_install_page_lists_what_a_unit_expects(path: Path) -> None:
    """Its program, pages and state, its users, and the addresses to replace."""
    page = PAGE.read_text(encoding="utf-8")
    unit = path.read_text(encoding="utf-8")
    (start,) = re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)
    program, *flags = shlex.split(start)
    expected = {program, *re.findall(r"http://\S+", start)}
    expected.add(flags[flags.index("--bootstrap") + 1])
    expected.update(re.findall(r"^WorkingDirectory=(.+)$", unit, re.MULTILINE))
    expected.update(re.findall(r"^User=(.+)$", unit, re.MULTILINE))
    pages = re.findall(r"^Documentation=file://(.+)/.+\.md$", unit, re.MULTILINE)
    assert len(pages) == 1
    missing = [one for one in (*expected, *pages) if f"`{one}`" not in page]
    assert missing == []
    assert path.name in page
    # What it writes is for its user alone.
    assert "\nUMask=0077\n" in unit


def test_install_page_is_linked_where_a_newcomer_looks() -> None:
    """From the first page, and from the page on running the monitor."""
    for name, link in (
        ("README.md", "docs/install.md"),
        ("docs/operations.md", "install.md"),
    ):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert f"]({link})" in text, name


def test_source_distribution_has_what_builds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler of the rules is not among the installed packages."""
    for name in (*FILES, "MANIFEST.in"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "compiler", tmp_path / "compiler")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    archive = backend.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / archive) as files:
        modules = {name.partition("/")[2] for name in files.getnames()}
    for path in (ROOT / "compiler").glob("*.py"):
        assert str(path.relative_to(ROOT)) in modules


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("form", "tag"),
    [
        ("interpreted", "py3-none-any"),
        ("compiled", f"cp3*-{PLATFORM}"),
    ],
)
def test_installation_warns_of_nothing_and_has_the_rules_in_the_form_asked_for(
    tmp_path: Path, form: str, tag: str
) -> None:
    """Nothing deprecated in the project's metadata, no file left out or ambiguous.

    The rules are compiled here first unless they are, as `make install` does.
    """
    if form == "compiled":
        build(ROOT)
    pytest.importorskip("setuptools", "80")
    source = tmp_path / "source"
    source.mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, source)
    for name in INSTALLED:
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=skipped)
    environment = os.environ | {"PYTHONWARNINGS": "default", SWITCH: form}
    environment.pop("PYTHONPATH", None)
    # It would print that nothing is compiled.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    options = ("--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "-v", *options),
            *("--wheel-dir", str(tmp_path / "wheel"), str(source)),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    assert [line for line in printed.splitlines() if "warning" in line.lower()] == []
    (wheel,) = (tmp_path / "wheel").glob(f"*-{tag}.whl")
    unpacked = tmp_path / "unpacked"
    shutil.unpack_archive(wheel, unpacked, "zip")
    found = subprocess.run(
        [sys.executable, "-c", "from sds_core.compiled import form; print(form())"],
        cwd=unpacked,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == form
