"""Archives of loaded classes: their names, how they are made, who uses them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from connectors.broker.jars import classpath, default_cache_dir, ensure_broker_jars
from connectors.class_archive import ClassArchive
from connectors.java import find_java


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A file in place of a `java`."""
    (tmp_path / "java").touch()
    return tmp_path / "java"


def test_another_class_path_or_java_has_another_archive(
    tmp_path: Path, java: Path
) -> None:
    """A file that was changed counts as another."""
    jar, other = tmp_path / "one.jar", tmp_path / "other.jar"
    jar.touch()
    other.touch()

    def archive(jar: Path, java: Path = java) -> ClassArchive:
        return ClassArchive.of("program", tmp_path, java, [jar])

    first = archive(jar)
    assert archive(jar) == first
    assert archive(other) != first
    assert archive(jar, java=other) != first
    assert ClassArchive.of("program", tmp_path, java, [jar], "more") != first
    jar.write_text("newer")
    assert archive(jar) != first


def test_missing_archive_needs_no_option(tmp_path: Path) -> None:
    """The JVM then starts as usual."""
    archive = ClassArchive(tmp_path / "program-1.jsa")
    assert archive.options == []
    archive.path.touch()
    assert archive.options == [f"-XX:SharedArchiveFile={archive.path}"]


def test_archive_appears_whole_and_replaces_older_ones(tmp_path: Path) -> None:
    """A half-written archive never has the archive's name."""
    older, foreign = tmp_path / "program-0.jsa", tmp_path / "another-0.jsa"
    older.touch()
    foreign.touch()
    archive = ClassArchive(tmp_path / "program-1.jsa")
    with archive.recording() as (option, *_):
        Path(option.partition("=")[2]).write_text("classes")
        assert not archive.path.exists()
    assert archive.path.read_text() == "classes"
    assert sorted(tmp_path.iterdir()) == [foreign, archive.path]


def test_failed_recording_leaves_nothing(tmp_path: Path) -> None:
    """Neither a JVM that writes nothing nor an error in the middle does."""
    older = tmp_path / "program-0.jsa"
    older.touch()
    archive = ClassArchive(tmp_path / "program-1.jsa")
    with pytest.raises(FileNotFoundError), archive.recording():
        pass

    def fail_in_the_middle() -> None:
        with archive.recording() as (option, *_):
            Path(option.partition("=")[2]).write_text("half")
            raise ConnectionError

    with pytest.raises(ConnectionError):
        fail_in_the_middle()
    assert list(tmp_path.iterdir()) == [older]


@pytest.mark.kafka
def test_jvm_loads_archived_classes_from_the_archive(tmp_path: Path) -> None:
    """And starts without an archive that is none."""
    java = find_java()
    archive = ClassArchive(tmp_path / "broker-1.jsa")
    class_path = classpath(ensure_broker_jars(default_cache_dir(), java))

    def run(*options: str) -> str:
        return subprocess.run(
            [java, *options, "-cp", class_path, "kafka.tools.StorageTool", "-h"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    with archive.recording() as options:
        plain = run(*options)
    assert "shared objects file (top)" in run(*archive.options, "-Xlog:class+load")
    archive.path.unlink()
    archive.path.write_text("no archive")
    assert run(*archive.options) == plain
