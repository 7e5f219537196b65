"""The same seed gives the same traffic, in any process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from connectors.simulator import scenario_names

pytestmark = pytest.mark.slow

PROGRAM = """
import hashlib, itertools, sys
from connectors.simulator.scenario_files import load_scenario
from connectors.simulator.records import simulation_of

for name in sys.argv[1:]:
    simulation = simulation_of(load_scenario(name), 1, 1_760_000_000_000, 4)
    digest = hashlib.sha256()
    for record in itertools.islice(simulation.records, 1_000):
        digest.update(repr(record).encode())
    print(name, digest.hexdigest())
"""


def hashes(hash_seed: int) -> str:
    """Hashes of the first records of every scenario."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *scenario_names()],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_traffic_does_not_depend_on_the_order_of_sets() -> None:
    """Python gives the elements of sets another order in each process."""
    assert hashes(1) == hashes(2)
