"""Range-based reconciliation: sessions of the Rust crate `negentropy`.

The program in `negentropy/` runs both sides. Cargo builds it once, outside of the
repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.data import cache_dir
from benchmarks.prolly.contenders import Session, check
from benchmarks.prolly.workload import Workload
from sds_core.prolly.item import HASH_BYTES, Item
from sds_core.prolly.outcome import Outcome

VERSION: Final = "0.5.3"
"""As in `negentropy/Cargo.lock`."""

UNITS: Final = {"ns": 1, "s": 1_000_000_000}
"""Units of the times that it gets, in ns; shorter numbers need fewer bytes."""

_SOURCE: Final = Path(__file__).with_name("negentropy")
_NAME: Final = "negentropy-sessions"
_BUILD_S: Final = 300


class Unavailable(Exception):
    """A contender cannot be had here; the text says why."""


class _Answer(msgspec.Struct):
    rounds: int
    sent: int
    received: int
    build_ns: int
    initiator_ns: int
    responder_ns: int
    have: str
    need: str


def build() -> Path:
    """Build the program; returns its path.

    Raises:
        Unavailable: There is no cargo, or it fails.
    """
    cargo = shutil.which("cargo")
    if cargo is None:
        raise Unavailable("there is no cargo")
    target = cache_dir() / "negentropy"
    command = [cargo, "build", "--release", "--locked", "--quiet"]
    command += ["--manifest-path", str(_SOURCE / "Cargo.toml")]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [*command, "--target-dir", str(target)],
            capture_output=True,
            text=True,
            timeout=_BUILD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("cargo took too long") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["without a word"]
        message = f"cargo failed: {lines[0]}"
        raise Unavailable(message)
    return target / "release" / _NAME


def rust_version() -> str:
    """Return the version of the compiler."""
    done = subprocess.run(
        ["rustc", "--version"],  # noqa: S607 - as cargo finds it
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    return done.stdout.split()[1] if done.returncode == 0 else "unknown"


class RangeBased:
    """A running program with the messages of one size.

    Args:
        process: The program.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.build_ms: list[float] = []

    def run(self, workload: Workload) -> Session:
        """Run a session.

        Raises:
            WrongResult: The result is not the exact difference.
        """
        process = self._process
        assert process.stdin is not None  # noqa: S101 - a pipe
        assert process.stdout is not None  # noqa: S101 - a pipe
        lacked = (workload.lacked_here, workload.lacked_there)
        process.stdin.write(" ".join(map(_numbers, lacked)) + "\n")
        process.stdin.flush()
        answer = msgspec.json.decode(process.stdout.readline(), type=_Answer)
        expected = workload.only_here | workload.only_there
        times_ns = {item.message_hash: item.timestamp_ns for item in expected}
        here, there = (
            [Item(times_ns.get(one, 0), one) for one in _hashes(text)]
            for text in (answer.have, answer.need)
        )
        check("negentropy", workload, Outcome(here, there))
        self.build_ms.append(answer.build_ns / 1_000_000)
        return Session(
            answer.rounds,
            answer.sent,
            answer.received,
            answer.initiator_ns / 1_000_000,
            answer.responder_ns / 1_000_000,
        )


@contextmanager
def running(program: Path, items: Path, unit: str) -> Iterator[RangeBased]:
    """Run the program until the block ends.

    Args:
        program: From `build`.
        items: File of the packed keys of all messages.
        unit: Of the times that it gets, from `UNITS`.
    """
    with subprocess.Popen(  # noqa: S603 - our own program
        [program, items, str(UNITS[unit])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield RangeBased(process)
        except BaseException:
            process.kill()
            raise


def _numbers(lacked: Collection[int]) -> str:
    return ",".join(map(str, lacked)) or "-"


def _hashes(text: str) -> list[bytes]:
    data = bytes.fromhex(text)
    return [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]
