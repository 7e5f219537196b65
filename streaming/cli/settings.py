"""Settings of commands: option, else environment, else file, else default.

Each flag ``--some-name`` can also be given as ``SDS_MONITOR_SOME_NAME`` or, with
``--config FILE``, as ``some-name = …`` in a TOML file: at its top for all commands,
in ``[some-command]`` for that one. A table ``[group]`` is for all commands of a group,
``[group.command]`` for one of them; the most specific table wins.

The table ``[observer]`` has the settings of the model (docs/figures.md). They are no
flags: a checkpoint has them from its first start on.
"""

from __future__ import annotations

import enum
import functools
import inspect
import math
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from connectors.toml_file import UnreadableToml, read_toml
from sds_core.text import did_you_mean, printable, shorten, shown
from streaming.cli.log import LOG_FLAG, LogFormat, logger, set_log_format

if TYPE_CHECKING:
    from sds_core.observer.settings_table import Values

STDIN = "-"
"""Name of standard input among the names of files."""

_LONGEST_NAME = 80
_LONGEST_ERROR = 500

_Command = TypeVar("_Command", bound=Callable[..., Any])

_TABLE = "observer"
_TABLE_OF = {"doctor": "run", "rebuild": "run"}
"""Command -> command whose table it reads too, before its own."""

_OBSERVER = f"{__name__}.observer"
"""Key of the checked table ``[observer]`` in the meta of a context."""

_FILE = f"{__name__}.file"
_FILE_WITH_SECRETS = f"{__name__}.file_with_secrets"


def setting(
    flag: str, *names: str, **attributes: Any
) -> Callable[[_Command], _Command]:
    """Return an option that environment and configuration file can set as well."""
    name = flag.split("/")[0].removeprefix("--")
    variable = "SDS_MONITOR_" + name.replace("-", "_").upper()
    attributes.setdefault("show_default", attributes.get("default") is not None)
    attributes.setdefault("cls", _Setting)
    return click.option(flag, *names, envvar=variable, **attributes)


class _Setting(click.Option):
    """Names the variable or the file in the error about a value that came from it."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        try:
            return super().process_value(ctx, value)
        except click.MissingParameter:
            raise
        except click.BadParameter as error:
            source = ctx.get_parameter_source(self.name or "")
            if source is ParameterSource.DEFAULT_MAP:
                name = self.opts[0].removeprefix("--")
                error.param_hint = f"{name!r} in {ctx.meta[_FILE]}"
            elif source is ParameterSource.ENVIRONMENT:
                error.param_hint = str(self.envvar)
            raise


def log_option(*, exposed: bool = False) -> Callable[[_Command], _Command]:
    """Add ``--log-format`` to a command, which gets it if `exposed`."""
    return setting(
        LOG_FLAG,
        type=MemberOf(LogFormat),
        default=LogFormat.TEXT.value,
        # Read before the other options, so that errors in them have this format.
        is_eager=True,
        expose_value=exposed,
        callback=_set_format,
        help="Format of the log on standard error: lines of text, or JSON objects.",
    )


def _set_format(
    context: click.Context, parameter: click.Parameter, value: LogFormat
) -> LogFormat:
    set_log_format(value)
    return value


def secret_setting(flag: str, *names: str, help: str) -> Callable[[_Command], _Command]:  # noqa: A002 - click's own word
    """Return an option that only environment and configuration file can set.

    Logs a warning if other users can read the file.
    """
    return setting(
        flag,
        *names,
        cls=_Secret,
        callback=_secret_value,
        help=f"{help} From environment or file only.",
    )


class _Secret(_Setting):
    """Marks an option whose value no message may repeat."""


def _secret_value(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    assert parameter.name is not None  # noqa: S101 - an option has a name
    if (path := context.meta.pop(_FILE_WITH_SECRETS, None)) is not None:
        _warn_if_others_can_read(path)
    source = context.get_parameter_source(parameter.name)
    if source is ParameterSource.COMMANDLINE:
        flag = parameter.opts[0]
        message = (
            "everybody on this machine can read a command line: give it as "
            f"{parameter.envvar}, or as {flag.removeprefix('--')} in the --config file"
        )
        raise click.BadParameter(message, param=parameter)
    return value


def config_option(command: _Command) -> _Command:
    """Add ``--config FILE`` to a command."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        is_eager=True,
        expose_value=False,
        envvar="SDS_MONITOR_CONFIG",
        callback=_read_config,
        help="TOML file with settings, named as the flags.",
    )(command)


def _read_config(
    context: click.Context, parameter: click.Parameter, path: Path | None
) -> None:
    if path is None:
        return
    try:
        _use_file(context, path)
    except UnreadableToml as error:
        message = f"{path}: {error}"
        raise click.BadParameter(message, param=parameter) from None
    except _BadFile as error:
        raise click.BadParameter(str(error), param=parameter) from None


class _BadFile(ValueError):
    """The file sets what it must not set; the message names the file."""


def _use_file(context: click.Context, path: Path) -> None:
    """Let a file set options of a command."""
    given = read_toml(path)
    try:
        if _TABLE in given:
            context.meta[_OBSERVER] = _observer(given.pop(_TABLE))
    except ValueError as error:
        message = f"{path}: {printable(shorten(str(error), _LONGEST_ERROR))}"
        raise _BadFile(message) from None
    options = _options(context.command)
    values = _values(path, given, context)
    if any(isinstance(options.get(name), _Secret) for name in values):
        # The warning waits: the file may set the format of the log.
        context.meta[_FILE_WITH_SECRETS] = path
    context.meta[_FILE] = path
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
    # numpy comes with it, and most commands have no such table.
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
    """Return the values that a file sets for a command, from all its tables."""
    path_of_command = [context]
    while (outer := path_of_command[0].parent) is not None:
        path_of_command.insert(0, outer)
    if len(path_of_command) > 1:
        # The program itself has no table: settings for all stand at the top.
        program = path_of_command.pop(0)
        _check_top(path, given, program)
    values = {name: one for name, one in given.items() if not isinstance(one, dict)}
    table: Any = given
    full_name = ""
    for inner in path_of_command:
        name = inner.info_name or ""
        if (shared := _TABLE_OF.get(name)) is not None:
            values |= _in_table(path, shared, given.get(shared, {}), inner.command)
        full_name = f"{full_name} {name}".lstrip()
        table = table.get(name, {})
        values |= _in_table(path, full_name, table, inner.command)
    return values


def _in_table(
    path: Path, full_name: str, table: Any, command: click.Command
) -> dict[str, Any]:
    """Return the values in a table of a command, whose names it must know."""
    if not isinstance(table, dict):
        message = f"{path} sets {full_name} to {shown(table)}: it must be a table"
        raise _BadFile(message)
    commands = command.commands if isinstance(command, click.Group) else {}
    known = {o for one in (command, *commands.values()) for o in _options(one)}
    unknown = sorted(table.keys() - known - commands.keys())
    if unknown:
        name = printable(shorten(unknown[0], _LONGEST_NAME))
        names = sorted(known | commands.keys())
        message = (
            f"{path} sets {name} for {full_name}, which it does not know"
            f"{did_you_mean(unknown[0], names)}: it knows {', '.join(names)}"
        )
        raise _BadFile(message)
    return {name: one for name, one in table.items() if name not in commands}


def _check_top(path: Path, given: Mapping[str, Any], program: click.Context) -> None:
    """Check each name at the top of a file: a command's table, or a known setting."""
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
            raise _BadFile(message)


def _all_options(command: click.Command, context: click.Context) -> set[str]:
    known = set(_options(command))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (inner := command.get_command(context, name)) is not None:
                known |= _all_options(inner, context)
    return known


def _given(path: Path, name: str, option: click.Option, value: Any) -> Any:
    """Return a value of the file in the form that an option would give."""
    kind = "no list of single values" if option.multiple else "no single value"
    if option.is_flag and isinstance(value, bool):
        return value
    given = value if option.multiple and isinstance(value, list) else [value]
    if any(isinstance(item, bool) for item in given):
        kind = "only for flags"
    elif any(isinstance(item, str) and "\0" in item for item in given):
        # The system ends a text there.
        kind = "no text without a null character"
    elif not any(isinstance(item, list | dict) for item in given):
        return [str(item) for item in given] if option.multiple else str(value)
    quoted = "something" if isinstance(option, _Secret) else shown(value)
    message = f"{path} sets {name} to {quoted}, which is {kind}"
    raise _BadFile(message)


def _warn_if_others_can_read(path: Path) -> None:
    if path.stat().st_mode & 0o077:
        logger.warning(
            "%s holds a password that others can read: chmod 600 %s",
            path,
            shlex.quote(str(path)),
        )


class MemberOf(click.Choice[str]):
    """One value of an enumeration of texts, converted to its member."""

    def __init__(self, kind: type[enum.StrEnum]) -> None:
        super().__init__([member.value for member in kind])
        self._kind = kind

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> enum.StrEnum:
        """Return the member."""
        return self._kind(super().convert(value, param, ctx))


class Number(click.FloatRange):
    """A number in a range; unlike click's own, neither NaN nor infinity."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{shown(value)} is no finite number", param, ctx)
        return number


class Parsed(click.ParamType[Any]):
    """A text that a function parses, which raises ValueError with what is wrong."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the value; one that was parsed already stays as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Time(Parsed):
    """A time, converted to Unix ms; or one of some words in its place."""

    def __init__(self, *words: str) -> None:
        super().__init__("|".join([*words, "TIME"]), partial(_parse_time, words))


def _parse_time(words: Sequence[str], text: str) -> str | int:
    if text in words:
        return text
    try:
        if text.isdigit():
            time = datetime.fromtimestamp(int(text) / 1000, UTC)
        else:
            time = datetime.fromisoformat(text).astimezone()
        unix_ms = round(time.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        unix_ms = -1
    # No record has a time before 1970.
    if unix_ms < 0:
        known = ", ".join([*words, "a time such as 2026-11-21T08:00:00Z"])
        message = f"{shown(text)} is neither {known}, nor Unix milliseconds"
        raise ValueError(message)
    return unix_ms


Decorator = Callable[[Callable[..., None]], Callable[..., None]]
"""Adds options to a command."""


def nearest_given(*names: str) -> str | None:
    """Return which option is given nearest: by command line, environment or file.

    None if none is given.

    Raises:
        click.UsageError: Two are given equally near.
    """
    context = click.get_current_context()
    for nearest in (
        ParameterSource.COMMANDLINE,
        ParameterSource.ENVIRONMENT,
        ParameterSource.DEFAULT_MAP,
    ):
        given = [n for n in names if context.get_parameter_source(n) is nearest]
        if len(given) > 1:
            *others, last = (f"--{name}" for name in names)
            message = f"give one of {', '.join(others)} and {last}"
            raise click.UsageError(message)
        if given:
            return given[0]
    return None


def option_group(
    argument: str,
    options: Sequence[Decorator],
    build: Callable[..., Any],
    *,
    shared: Collection[str] = (),
) -> Decorator:
    """Return a decorator that adds options and passes on what `build` makes of them.

    `build` gets the values of `options`, and those of decorators above this one that
    its parameters name. A value that no option gives must have a default in `build`.

    Args:
        argument: Parameter of the command that gets the result of `build`.
        options: Decorators from `setting`, in the order of the help text.
        build: Makes the settings object; raises `click.UsageError` if the values
            contradict one another.
        shared: Parameters of `build` that the command gets as well.
    """
    needed = _names_of(options) | inspect.signature(build).parameters.keys()

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_group(**values: Any) -> None:
            given = {name: values[name] for name in needed if name in values}
            others = {
                name: value
                for name, value in values.items()
                if name not in needed or name in shared
            }
            command(**others, **{argument: build(**given)})

        decorated: Callable[..., None] = with_group
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return add


def _names_of(options: Sequence[Decorator]) -> set[str]:
    """Return the names under which a command gets the values of some options."""

    @click.command
    def command() -> None: ...

    for option in options:
        option(command)
    return {parameter.name for parameter in command.params if parameter.name}
