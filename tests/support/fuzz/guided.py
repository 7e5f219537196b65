"""Fuzzes the decoders guided by coverage, with Atheris: `make fuzz-guided`.

Nothing of ours is imported before Atheris can instrument it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from random import Random

_CORPUS = Path("artifacts/fuzz-corpus")
_MEASURED = ["sds_core", "connectors", "streaming"]
_FOUND = 3
"""Exit code after a finding; libFuzzer has others."""


def run_guided(names: Sequence[str], seconds: float, jobs: int) -> list[str]:
    """Fuzz decoders, each for the same time; return those that broke their contract.

    Inputs begin with genuine ones. Those that reached new code are kept below
    artifacts/fuzz-corpus, where the next run continues.
    """
    share_s = max(1, round(seconds * jobs / len(names)))
    with ThreadPoolExecutor(jobs) as pool:
        codes = list(pool.map(lambda name: _run(name, share_s), names))
    return [name for name, code in zip(names, codes, strict=True) if code]


def _run(name: str, seconds: int) -> int:
    """Fuzz a decoder in a process of its own, because Atheris never returns."""
    from sds_core.compiled import SWITCH

    command = [sys.executable, "-m", "tests.support.fuzz.guided", name]
    options = [f"-max_total_time={seconds}", "-max_len=65536", "-rss_limit_mb=4096"]
    # Compiled rules would show no coverage.
    environment = os.environ | {SWITCH: "interpreted"}
    return subprocess.run([*command, *options], env=environment, check=False).returncode


def _fuzz(name: str, options: Sequence[str]) -> None:
    import atheris

    with atheris.instrument_imports(_MEASURED):
        from tests.support.fuzz.targets import TARGETS
    from tests.support.fuzz.__main__ import report
    from tests.support.fuzz.running import Finding, check, corpus_of, minimised

    target = TARGETS[name]
    known = [*target.seeds, *corpus_of(target)]
    directory = _CORPUS / name
    directory.mkdir(parents=True, exist_ok=True)
    for data in known:
        (directory / sha256(data).hexdigest()[:12]).write_bytes(data)

    def check_input(data: bytes) -> None:
        finding = check(target, data)
        if isinstance(finding, Finding):
            report(minimised(finding, target))
            os._exit(_FOUND)

    atheris.Setup(
        [name, *options, str(directory)],
        check_input,
        # Not `atheris.Mutate` itself, which `Fuzz` replaces.
        custom_mutator=_mutator(
            known, target.change, lambda *given: atheris.Mutate(*given)
        ),
    )
    atheris.Fuzz()


def _mutator(
    known: Sequence[bytes],
    change: Callable[[Random, bytes, bytes], bytes],
    mutate: Callable[[bytes, int], bytes],
) -> Callable[[bytes, int, int], bytes]:
    """Return what changes an input: its structure, or its bytes as libFuzzer does."""

    def changed(data: bytes, longest: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.5:
            return change(random, data, random.choice(known))[:longest]
        return mutate(data, longest)

    return changed


if __name__ == "__main__":
    _fuzz(sys.argv[1], sys.argv[2:])
