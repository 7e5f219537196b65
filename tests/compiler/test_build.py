"""What is compiled, with which compiler, and what happens without one."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from compiler import backend, build
from compiler.c_compiler import (
    CompilationFailed,
    Compiler,
    CompilerMissing,
    find_compiler,
)
from compiler.derive import derive
from compiler.tree import Module, Tree
from sds_core import compiled
from sds_core.compiled import FILES, MODULES, SWITCH, TAG
from tests.support.deployment import ROOT

NO_COMPILER = 3
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources, not compiled."""
    left_out = shutil.ignore_patterns("core", "__pycache__")
    for name in ("compiler", "sds_core"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(
    tree: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run this Python on a tree, without a switch and without a package index."""
    environment = {k: v for k, v in os.environ.items() if k not in ("CC", SWITCH)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment | {"PYTHONPATH": str(tree), "PIP_NO_INDEX": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=200,
    )


def pretend_compiled(tree: Path, content: bytes = b"") -> Path:
    """Put files in the place of the compiled form; returns their directory."""
    place = Path(compiled.directory(str(tree)))
    place.mkdir(parents=True)
    for name in FILES:
        (place / name).write_bytes(content)
    return place


@pytest.mark.parametrize("variables", [{}, {"CC": "no-such-compiler"}])
def test_missing_compiler_is_said_in_one_line_and_has_its_exit_code(
    tree: Path, variables: dict[str, str]
) -> None:
    """Neither the machine nor pip has one: CI can require it, `make install` not."""
    done = run(tree, "-m", "compiler", PATH="/nowhere", **variables)
    assert done.returncode == NO_COMPILER, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("no C compiler that works (")
    assert variables.get("CC", "none in PATH") in last
    assert "the package ziglang cannot be installed: the rules run interpreted" in last
    assert "`make core`" in last
    assert compiled.find(str(tree)) is None


def test_error_in_a_source_is_no_missing_compiler(tree: Path) -> None:
    """It names the line, and nothing is left that would be loaded."""
    path = tree / "sds_core" / "observer" / "deadlines.py"
    path.write_text(path.read_text() + "\n\ndef f(n: int) -> int:\n    return 1 << n\n")
    done = run(tree, "-m", "compiler")
    if "no C compiler" in done.stderr:
        pytest.skip("there is no C compiler")
    assert done.returncode == 1
    assert done.stderr.startswith("sds_core.observer.deadlines, line ")
    assert not (tree / "sds_core" / "core").exists()


@needs_compiler
def test_refused_c_source_leaves_no_module(tmp_path: Path) -> None:
    """The error has the words of the compiler."""
    source, target = tmp_path / "one.c", tmp_path / "one.so"
    source.write_text("int broken(void) { return nothing; }\n")
    with pytest.raises(CompilationFailed, match="nothing"):
        find_compiler().make_module(source, target, ())
    assert list(tmp_path.iterdir()) == [source]


def test_compiled_sources_are_not_compiled_again(tree: Path) -> None:
    """That takes no compiler, and Cython is not even imported."""
    place = pretend_compiled(tree)
    program = """
import runpy, sys
runpy.run_module("compiler", run_name="__main__")
assert "Cython" not in sys.modules and "setuptools" not in sys.modules
"""
    (place / "builder").write_text(build._key(*build._own_sources()))  # noqa: SLF001
    interpreted = {SWITCH: "interpreted"}
    done = run(tree, "-c", program, PATH="/nowhere", **interpreted)
    assert (done.returncode, done.stderr) == (0, "")
    # Another compiler of ours would make something else of them.
    changed = tree / "compiler" / "derive.py"
    changed.write_text(changed.read_text() + "# changed\n")
    done = run(tree, "-m", "compiler", PATH="/nowhere", **interpreted)
    assert done.returncode == NO_COMPILER


def test_second_build_waits_for_the_first(tree: Path) -> None:
    """Then it finds that nothing is left to do."""
    place = pretend_compiled(tree)
    (place / "builder").write_text(build._key(*build._own_sources()))  # noqa: SLF001
    found: list[Path] = []
    second = threading.Thread(target=lambda: found.append(build.build(tree)))
    (tree / "build").mkdir()
    with (tree / "build" / "core.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second.start()
        second.join(0.2)
        assert found == []
    second.join(60)
    assert found == [place]


def test_incomplete_form_is_not_found(tree: Path) -> None:
    """One that is being installed, or was interrupted."""
    assert compiled.find(str(tree)) is None
    place = pretend_compiled(tree)
    assert compiled.find(str(tree)) == str(place)
    (place / min(FILES)).unlink()
    assert compiled.find(str(tree)) is None


@pytest.mark.parametrize("name", ["observer/table.py", "observer/sds/limits.py"])
def test_change_of_a_source_or_of_its_constants_makes_the_form_another_one(
    tree: Path, name: str
) -> None:
    """The build writes constants of other modules into those that it compiles."""
    place = pretend_compiled(tree)
    path = tree / "sds_core" / name
    path.write_text(path.read_text() + "# changed\n")
    assert compiled.find(str(tree)) is None
    assert compiled.directory(str(tree)) != str(place)
    assert compiled.directory(str(tree)).endswith(TAG)


def test_build_takes_constants_only_from_packages_of_compiled_modules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their sources name the form: a constant from elsewhere would stay an old one."""
    tree, origins = Tree(ROOT), set()
    find_origin = tree.origin

    def origin(module: Module, name: str) -> tuple[Module, str]:
        found, original = find_origin(module, name)
        if original in {**found.constants, **dict.fromkeys(found.enums)}:
            origins.add(found.name)
        return found, original

    monkeypatch.setattr(tree, "origin", origin)
    modules = [found for name in MODULES if (found := tree.module(name)) is not None]
    for module in modules:
        derive(tree, module, modules)
    packages = {name.rpartition(".")[0] for name in MODULES}
    assert origins
    assert {
        name for name in origins if name.rpartition(".")[0] not in packages
    } == set()


def test_form_that_cannot_be_loaded_runs_interpreted_and_says_so(tree: Path) -> None:
    """For instance one that needs a newer C library."""
    pretend_compiled(tree, b"no module")
    show = ("-c", "from sds_core import compiled; print(compiled.form())")
    done = run(tree, *show)
    assert done.stdout == "interpreted\n", done.stderr
    assert "RuntimeWarning: the compiled rules cannot be loaded" in done.stderr
    done = run(tree, *show, **{SWITCH: "compiled"})
    assert done.returncode == 1
    assert "ImportError" in done.stderr


def test_build_of_a_wheel_requires_cython_and_a_compiler_only_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And neither if the rules are to stay interpreted."""

    def names() -> set[str]:
        return {one.partition("=")[0] for one in backend.get_requires_for_build_wheel()}

    def missing() -> Compiler:
        raise CompilerMissing("none")

    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(backend, "find_compiler", lambda: Compiler(("cc",)))
    assert names() == {"cython", "setuptools>"}
    monkeypatch.setattr(backend, "find_compiler", missing)
    assert names() == {"cython", "setuptools>", "ziglang"}
    monkeypatch.setenv(SWITCH, "interpreted")
    assert names() == set()
