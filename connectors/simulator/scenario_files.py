"""Reads scenarios from TOML files: shipped scenarios by name, other files by path."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from pathlib import Path

from connectors.simulator import SUFFIX, scenario_names, shipped_scenarios
from connectors.simulator.records import AnyScenario
from connectors.toml_file import UnreadableToml, read_toml
from sds_core.reading import TableError
from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.scenario import Scenario
from sds_core.text import did_you_mean, shown


class UnreadableScenario(ValueError):
    """The scenario does not exist, or its file is invalid."""


def load_scenario(name: str) -> AnyScenario:
    """Read the shipped scenario `name`, or the file `name` if it ends in `.toml`.

    Raises:
        UnreadableScenario: No scenario has this name, or the file is missing or
            invalid.
    """
    if name.endswith(SUFFIX):
        return _read(Path(name), name)
    for file in shipped_scenarios():
        if file.name == name + SUFFIX:
            return _read(file, file.name)
    known = scenario_names()
    message = (
        f"no scenario has the name {shown(name)}{did_you_mean(name, known)}: give the "
        f"path of a TOML file, or one of {', '.join(known)}"
    )
    raise UnreadableScenario(message)


def _read(file: Traversable, name: str) -> AnyScenario:
    try:
        mapping = read_toml(file)
        # A scenario without the key `protocol` simulates SDS.
        if "protocol" in mapping:
            return MvdsScenario.from_mapping(mapping)
        return Scenario.from_mapping(mapping)
    except (UnreadableToml, TableError) as error:
        message = f"{name}: {error}"
        raise UnreadableScenario(message) from error
