"""The scenarios that ship with the package, and scenarios from files."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

from sds_core.simulation.reading import ScenarioError
from sds_core.simulation.scenario import Scenario

_SUFFIX = ".toml"


class UnusableScenario(ValueError):
    """A scenario cannot be found or read."""


def scenario_names() -> list[str]:
    """The names of the scenarios that ship with the package, sorted."""
    shipped = files(__package__).joinpath("scenarios").iterdir()
    return sorted(
        file.name.removesuffix(_SUFFIX)
        for file in shipped
        if file.name.endswith(_SUFFIX)
    )


def load_scenario(name: str) -> Scenario:
    """A scenario by the name that it ships under, or from a file.

    Args:
        name: One of `scenario_names`, or the path of a file ending in ``.toml``.

    Raises:
        UnusableScenario: There is none, or it cannot be read; says what to do.
    """
    if name.endswith(_SUFFIX):
        source, text = name, _text_of(Path(name))
    elif name in scenario_names():
        source = name
        text = files(__package__).joinpath("scenarios", name + _SUFFIX).read_text()
    else:
        message = (
            f"there is no scenario {name!r}: take one of "
            f"{', '.join(scenario_names())}, or a file ending in {_SUFFIX}"
        )
        raise UnusableScenario(message)
    try:
        return Scenario.from_mapping(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ScenarioError) as error:
        message = f"scenario {source}: {error}"
        raise UnusableScenario(message) from error


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        message = f"scenario {path} cannot be read: {error}"
        raise UnusableScenario(message) from error
