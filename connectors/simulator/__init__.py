"""Reads scenario files and turns a simulation into Kafka records.

The simulation itself is `sds_core.simulation`.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

SUFFIX = ".toml"


def scenario_names() -> list[str]:
    """Return the names of the scenarios that come with sds-monitor, sorted."""
    return sorted(file.name.removesuffix(SUFFIX) for file in shipped_scenarios())


def shipped_scenarios() -> list[Traversable]:
    """Return the files of the scenarios that come with sds-monitor."""
    directory = files(__package__).joinpath("scenarios")
    return [file for file in directory.iterdir() if file.name.endswith(SUFFIX)]
