"""Reads the configuration file that ``--config`` names.

A setting at the top of the TOML file is for all commands. A table ``[command]``,
``[group]`` or ``[group.command]`` is for that command or group. If several tables have
the same setting, the most specific table wins. The table ``[observer]`` has the
settings of the model (docs/figures.md). They have no command-line options, because a
job's checkpoint keeps the model's settings from the job's first start.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from connectors.toml_file import read_toml
from sds_core.text import did_you_mean, printable, shorten, shown
from streaming.cli.settings import CONFIG_FILE, FILE_WITH_SECRETS, Secret

if TYPE_CHECKING:
    from sds_core.observer.settings_table import Values

_LONGEST_NAME = 80
_LONGEST_ERROR = 500

_TABLE = "observer"
TABLE_OF = {"doctor": "run", "rebuild": "run"}
"""Command -> second command, whose options it also has. The first command reads the
second command's table, and then its own table, which overrides the other."""

_OBSERVER = f"{__name__}.observer"
"""Key in the ``meta`` of a click context: the checked table ``[observer]``."""


def _read_config(
    context: click.Context, parameter: click.Parameter, path: Path | None
) -> None:
    if path is None:
        return
    try:
        given = read_toml(path)
        if _TABLE in given:
            context.meta[_OBSERVER] = _observer(given.pop(_TABLE))
    except ValueError as error:
        message = f"{path}: {printable(shorten(str(error), _LONGEST_ERROR))}"
        raise click.BadParameter(message) from None
    options = _options(context.command)
    values = _values(path, given, context)
    if any(isinstance(options.get(name), Secret) for name in values):
        # If other users can read the secrets, a warning is logged. It is logged later,
        # because the file may set the format of the log.
        context.meta[FILE_WITH_SECRETS] = path
    context.meta[CONFIG_FILE] = path
    context.default_map = {
        str(option.name): _given(path, name, option, values[name])
        for name, option in options.items()
        if name in values
    }


def observer_settings() -> Values:
    """Return the settings of the model that the configuration file gives."""
    values: Values = click.get_current_context().meta.get(_OBSERVER, {})
    return values


def _observer(table: Any) -> Values:
    if not isinstance(table, dict):
        message = f"{_TABLE} is {shown(table)}: it must be a table"
        raise ValueError(message)
    # The import loads numpy, which most commands do not need.
    from sds_core.observer.settings_table import read_values

    return read_values(table)


def _options(command: click.Command) -> dict[str, click.Option]:
    return {
        p.opts[0].removeprefix("--"): p
        for p in command.params
        if isinstance(p, click.Option) and p.name
    }


def _values(
    path: Path, given: Mapping[str, Any], context: click.Context
) -> dict[str, Any]:
    path_of_command = [context]
    while (outer := path_of_command[0].parent) is not None:
        path_of_command.insert(0, outer)
    if len(path_of_command) > 1:
        # Settings for the whole program are at the top of the file, not in a table.
        program = path_of_command.pop(0)
        _check_top(path, given, program)
    values = {name: one for name, one in given.items() if not isinstance(one, dict)}
    table: Any = given
    full_name = ""
    for inner in path_of_command:
        name = inner.info_name or ""
        if (shared := TABLE_OF.get(name)) is not None:
            values |= _in_table(path, shared, given.get(shared, {}), inner.command)
        full_name = f"{full_name} {name}".lstrip()
        table = table.get(name, {})
        values |= _in_table(path, full_name, table, inner.command)
    return values


def _in_table(
    path: Path, full_name: str, table: Any, command: click.Command
) -> dict[str, Any]:
    """Return the settings in a command's table; an unknown setting is an error."""
    if not isinstance(table, dict):
        message = (
            f"{path} sets {full_name} to {shown(table)}, but {full_name} must be a "
            "table"
        )
        raise click.BadParameter(message)
    commands = command.commands if isinstance(command, click.Group) else {}
    known = {o for one in (command, *commands.values()) for o in _options(one)}
    unknown = sorted(table.keys() - known - commands.keys())
    if unknown:
        name = printable(shorten(unknown[0], _LONGEST_NAME))
        names = sorted(known | commands.keys())
        message = (
            f"{path} sets {name} for {full_name}, but {full_name} has no setting {name}"
            f"{did_you_mean(unknown[0], names)}: use one of {', '.join(names)}"
        )
        raise click.BadParameter(message)
    return {name: one for name, one in table.items() if name not in commands}


def _check_top(path: Path, given: Mapping[str, Any], program: click.Context) -> None:
    """Check that each name at the top of the file is a known command or setting."""
    group = program.command
    if not isinstance(group, click.Group):
        return
    commands = set(group.list_commands(program))
    settings = _all_options(group, program)
    for name, value in given.items():
        is_table = isinstance(value, dict)
        if name not in (commands if is_table else settings | commands):
            known = sorted(commands if is_table else settings)
            message = (
                f"{path} has {'the table ' if is_table else ''}"
                f"{printable(shorten(name, _LONGEST_NAME))}, but no "
                f"{'command' if is_table else 'setting'} of this name exists"
                f"{did_you_mean(name, known)}"
            )
            raise click.BadParameter(message)


def _all_options(command: click.Command, context: click.Context) -> set[str]:
    known = set(_options(command))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (inner := command.get_command(context, name)) is not None:
                known |= _all_options(inner, context)
    return known


def _given(path: Path, name: str, option: click.Option, value: Any) -> Any:
    kind = "not a list of single values" if option.multiple else "not a single value"
    if option.is_flag and isinstance(value, bool):
        return value
    given = value if option.multiple and isinstance(value, list) else [value]
    if any(isinstance(item, bool) for item in given):
        kind = "only for flags"
    elif any(isinstance(item, str) and "\0" in item for item in given):
        # For the operating system, a null character would end the text.
        kind = "a text with a null character"
    elif not any(isinstance(item, list | dict) for item in given):
        return [str(item) for item in given] if option.multiple else str(value)
    quoted = "something" if isinstance(option, Secret) else shown(value)
    message = f"{path} sets {name} to {quoted}, which is {kind}"
    raise click.BadParameter(message)


config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    is_eager=True,
    expose_value=False,
    envvar="SDS_MONITOR_CONFIG",
    callback=_read_config,
    help="TOML file with settings. A setting has the name of its option, without "
    "leading dashes.",
)
"""Adds ``--config FILE`` to a command."""
