"""Decoders under genuine inputs with a changed structure: a short `make fuzz`."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from docs.make_guarantees import Fuzz, read_run
from tests.support.fuzz import __main__ as command
from tests.support.fuzz.running import (
    CORPUS,
    Finding,
    TooExpensive,
    check,
    minimised,
    run,
)
from tests.support.fuzz.target import Target
from tests.support.fuzz.targets import TARGETS

SEED = int(os.environ.get("SDS_MONITOR_FUZZ_SEED", "0"))
KNOWN = sorted(path for path in CORPUS.glob("*/*") if path.is_file())

each_target = pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))


def text_of(finding: Finding) -> str:
    """What to read of a finding, with the input if it is short."""
    return f"{finding.text}\n{finding.data[:500]!r}"


@each_target
def test_genuine_inputs_are_accepted(target: Target) -> None:
    """Otherwise their variants would test nothing but a refusal."""
    for data in target.seeds:
        for costs in (-1, 0, 1):
            found = check(target, data, costs)
            assert not isinstance(found, Finding), text_of(found)
            assert found, data[:200]


@pytest.mark.slow
@each_target
def test_changed_inputs_break_no_contract(target: Target) -> None:
    """The same inputs at every run; SDS_MONITOR_FUZZ_SEED=… gives others."""
    tally = run(target, SEED, 0, lambda inputs: inputs >= target.tested)
    findings = list(tally.findings.values())
    assert not findings, text_of(minimised(findings[0], target))
    assert tally.accepted


@pytest.mark.parametrize(
    "path", KNOWN, ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_defect_that_was_found_is_mended(path: Path) -> None:
    """The corpus has an input for each."""
    found = check(TARGETS[path.parent.name], path.read_bytes(), 1)
    assert not isinstance(found, Finding), text_of(found)


# The machinery itself.


def digits(data: bytes) -> bool:
    """A decoder that fails at a 7, and gets dear with the number of nines."""
    if b"7" in data:
        raise KeyError(data)
    made = [bytes(100_000) for byte in data if byte == ord("9")]
    calls = sum(abs(0) for byte in data if byte == ord("8") for _ in range(60_000))
    return len(made) >= calls


def changed(random: Random, value: bytes, other: bytes) -> bytes:
    """One digit more."""
    return value + other + str(random.randrange(7)).encode()


DIGITS = Target("frame", lambda: [b"0123456"], changed, digits)


def test_the_same_seed_gives_the_same_inputs() -> None:
    """Whatever was run before."""
    seen: list[bytes] = []
    noting = Target(
        "frame", DIGITS.genuine, changed, lambda data: not seen.append(data)
    )
    run(noting, 5, 0, lambda inputs: inputs >= 20)
    run(noting, 5, 10, lambda inputs: inputs >= 10)
    assert seen[10:20] == seen[20:]
    assert len(set(seen)) > 5


def test_finding_is_shortened_to_what_shows_it() -> None:
    """A digit is enough."""
    found = check(DIGITS, b"0123456789" * 20)
    assert isinstance(found, Finding)
    assert minimised(found, DIGITS).data == b"7"
    assert "KeyError" in found.place


@pytest.mark.parametrize(("costs", "data"), [(0, b"88"), (1, b"9" * 30)])
def test_input_that_costs_more_than_its_size_allows_is_found(
    costs: int, data: bytes
) -> None:
    """Calls and memory are counted for some inputs, as it takes time."""
    assert check(DIGITS, data) is True
    found = check(DIGITS, data, costs)
    assert isinstance(found, Finding)
    assert TooExpensive.__name__ in found.place


def test_memory_of_another_thread_is_not_that_of_the_decoder() -> None:
    """It allocates at times, the decoder always."""
    sizes = iter([8_000_000, 0])

    def decode(data: bytes) -> bool:
        thread = threading.Thread(target=bytearray, args=[next(sizes)])
        thread.start()
        thread.join()
        return True

    target = Target("frame", DIGITS.genuine, changed, decode)
    assert check(target, b"1", 1) is True


def test_command_saves_what_it_finds_and_checks_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding is a file; its directory names the decoder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TARGETS, "frame", DIGITS)
    finding = check(DIGITS, b"7")
    assert isinstance(finding, Finding)
    command.report(finding)
    (path,) = Path("artifacts/fuzz/frame").iterdir()
    assert path.read_bytes() == b"7"
    again = CliRunner().invoke(command.main, ["--input", str(path)])
    assert again.exit_code == 1
    assert "KeyError" in again.output
    path.write_bytes(b"0")
    again = CliRunner().invoke(command.main, ["--input", str(path)])
    assert (again.exit_code, again.output) == (0, "frame: accepted\n")


def test_command_runs_a_decoder_and_writes_its_figures(tmp_path: Path) -> None:
    """The seed is printed; without findings the exit code is 0."""
    figures = tmp_path / "figures.json"
    words = ["--minutes", "0.01", "--jobs", "1", "--seed", "3"]
    words += ["--target", "segment", "--figures", str(figures)]
    result = CliRunner().invoke(command.main, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert "seed 3" in result.output
    found = read_run(figures)
    assert isinstance(found, Fuzz)
    assert (found.given_minutes, found.seed) == (0.01, 3)


@pytest.mark.long
def test_coverage_guides_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run begins with the genuine inputs, and adds others that reach new code."""
    pytest.importorskip("atheris")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.chdir(tmp_path)
    words = ["--guided", "--minutes", "0.1", "--jobs", "1", "--target", "segment"]
    assert CliRunner().invoke(command.main, words).exit_code == 0
    inputs = list(Path("artifacts/fuzz-corpus/segment").iterdir())
    assert len(inputs) > len(TARGETS["segment"].seeds)
