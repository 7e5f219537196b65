"""Writes what is made of the Helm chart, and for it: ``python -m deploy.make_chart``.

The schema of the chart's values gets the settings of the commands, so that a misspelt
setting is refused before a pod starts. The plain manifest is the chart with its default
values.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sds_core.observer.settings import DEFAULTS
from sds_core.observer.settings_table import read_values
from sds_core.reading import TableError
from streaming.cli import group
from streaming.cli.settings import Secret
from streaming.cli.values import Duration, Number, Text

CHART = Path(__file__).with_name("helm") / "sds-monitor"
SCHEMA = CHART / "values.schema.json"
MANIFEST = Path(__file__).with_name("kubernetes") / "sds-monitor.yaml"
KUBERNETES = "1.34"
"""Version whose schemas check the chart; a Helm that Go builds assumes an old one."""

Schema = dict[str, Any]

_COMMANDS = (("run",), ("mirror",), ("audit", "compare"))
_BY_CHART = {
    *("allowed-host", "audit", "channels", "checkpoint", "config", "host"),
    *("insecure-web", "master", "metrics-port", "shuffle-partitions", "state"),
    "web-config",
}
"""Settings that the templates set."""
_ENDING = {"from", "from-file", "json", "report", "to", "until-caught-up"}
"""Settings of a command that ends by itself, which a pod does not."""
_NUMBER: Schema = {"type": "number", "minimum": 0}
_DURATION: Schema = {
    "type": ["number", "string"],
    "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d)?)+$",
}
"""A text such as 5m, or a number, which alone has bounds."""
_HEAD = """\
# Made by `python -m deploy.make_chart` of deploy/helm/sds-monitor; do not edit it by
# hand. docs/kubernetes.md says how to use it.
"""


def schema() -> Schema:
    """Return the schema of the values, with the settings of the present commands."""
    made: Schema = json.loads(SCHEMA.read_text("utf-8"))
    made["$defs"]["settings"] = {name: _table(of) for name, of in _settings().items()}
    return made


def manifest() -> str:
    """Return the plain manifest; needs `helm`.

    Raises:
        subprocess.CalledProcessError: Helm refuses the chart.
    """
    words = ("helm", "template", "sds-monitor", CHART, "--namespace", "sds")
    made = subprocess.run(  # noqa: S603 - a fixed command
        [*words, "--kube-version", KUBERNETES],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return _HEAD + made.stdout


def _settings() -> Mapping[str, Mapping[str, Schema]]:
    run, mirror, audit = (dict(_options(*words)) for words in _COMMANDS)
    common = run.keys() & mirror.keys() & audit.keys()
    nodes = (mirror.keys() & audit.keys()) - common
    return {
        "all": {name: mirror[name] for name in common},
        "nodes": {name: mirror[name] for name in nodes},
        "run": {name: run[name] for name in run.keys() - common},
        "mirror": {name: mirror[name] for name in mirror.keys() - common - nodes},
        "audit": {name: audit[name] for name in audit.keys() - common - nodes},
        "observer": {
            name: _NUMBER | (_DURATION if name.endswith("_ms") else {})
            for name in _of_model()
        },
    }


def _options(*words: str) -> Iterator[tuple[str, Schema]]:
    command: click.Command | None = group
    for word in words:
        assert isinstance(command, click.Group)  # noqa: S101 - all words but the last
        command = command.get_command(click.Context(group), word)
    assert command is not None  # noqa: S101 - `_COMMANDS` names commands
    for option in command.params:
        if isinstance(option, click.Option) and not isinstance(option, Secret):
            name = option.opts[0].removeprefix("--")
            if name not in _BY_CHART | _ENDING:
                yield name, _value(option)


def _value(option: click.Option) -> Schema:
    made = _type(option.type)
    if option.multiple:
        return {"type": "array", "items": made, "minItems": 1}
    return made


def _type(kind: click.ParamType[Any]) -> Schema:
    match kind:
        case click.Choice():
            return {"enum": list(kind.choices)}
        case click.IntRange() | Number():
            number = "integer" if isinstance(kind, click.IntRange) else "number"
            bounds = {"type": number, "minimum": kind.min, "maximum": kind.max}
            made = {name: bound for name, bound in bounds.items() if bound is not None}
            return made | (_DURATION if isinstance(kind, Duration) else {})
        case click.types.BoolParamType():
            return {"type": "boolean"}
        case click.Path() | Text():
            return {"type": "string", "minLength": 1}
    # A type of our own, which parses a text.
    return {"type": ["string", "number"]}


def _of_model() -> Iterator[str]:
    for name, value in asdict(DEFAULTS).items():
        try:
            read_values({name: value})
        except TableError:
            # A flag of `run` sets it.
            continue
        yield name


def _table(properties: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": dict(sorted(properties.items())),
    }


def main() -> None:
    """Write schema and manifest."""
    SCHEMA.write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")
    MANIFEST.write_text(manifest(), encoding="utf-8")


if __name__ == "__main__":
    main()
