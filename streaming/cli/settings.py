"""Options that the environment and a file can also set, and groups of options.

An option gets its value from one of these places, in order of precedence:
``--some-name`` on the command line, the variable ``SDS_MONITOR_SOME_NAME``, or
``some-name`` in the file of ``--config`` (`streaming.cli.config_file`).
"""

from __future__ import annotations

import enum
import functools
import inspect
import shlex
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich_click import RichOption

from streaming.cli.log import LOG_FLAG, LogFormat, logger, set_log_format
from streaming.cli.values import FILE, TEXT, Duration, MemberOf

Decorator = Callable[[Callable[..., None]], Callable[..., None]]
"""Adds options to a command."""

CONFIG_FILE = f"{__name__}.file"
"""Key in the ``meta`` of a click context.

The value is the path of the configuration file.
"""

FILE_WITH_SECRETS = f"{__name__}.file_with_secrets"
"""Key in the ``meta`` of a click context.

The value is the path of the configuration file, if the file contains secrets. When the
permissions of the file are checked, the key is removed.
"""


class Panel(enum.StrEnum):
    """Title over a group of options in the help text of a command."""

    KAFKA = "Kafka"
    SECURITY = "Kafka: TLS and login"
    NODES = "Waku nodes"
    PEER = "Other mirror"
    TRAFFIC = "Traffic"
    TIME = "Deadlines and windows"
    STORAGE = "Storage"
    WEB = "Page and metrics"
    CHANNELS = "Channels"
    SOURCE = "Source"
    FORECAST = "Forecast"
    LIMITS = "Limits"
    SPARK = "Spark"
    OUTPUT = "Output"


def setting(flag: str, *names: str, **attributes: Any) -> Decorator:
    """Return an option that the environment and the configuration file can also set.

    `attributes` are the attributes of `rich_click.RichOption`. If the type is a
    `Duration`, the default is a number in the unit `Duration.plain`.
    """
    name = flag.split("/")[0].removeprefix("--")
    variable = "SDS_MONITOR_" + name.replace("-", "_").upper()
    default, kind = attributes.get("default"), attributes.get("type")
    attributes.setdefault("show_default", default is not None)
    if isinstance(kind, Duration) and default is not None:
        # The help text shows the default with its unit.
        attributes["default"] = kind.text(default)
    attributes.setdefault("cls", _Setting)
    return click.option(flag, *names, envvar=variable, **attributes)


class _Setting(RichOption):
    """An option whose error names the variable or file that set the wrong value.

    By default, the value is a `Text`.
    """

    def __init__(self, *names: Any, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        if self.type is click.STRING:
            self.type = TEXT

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        try:
            return super().process_value(ctx, value)
        except click.MissingParameter:
            raise
        except click.BadParameter as error:
            source = ctx.get_parameter_source(self.name or "")
            if source is ParameterSource.DEFAULT_MAP:
                name = self.opts[0].removeprefix("--")
                error.param_hint = f"{name!r} in {ctx.meta[CONFIG_FILE]}"
            elif source is ParameterSource.ENVIRONMENT:
                error.param_hint = str(self.envvar)
            raise


def log_option(*, exposed: bool = False) -> Decorator:
    """Add ``--log-format``; if `exposed`, the command gets the format."""
    return setting(
        LOG_FLAG,
        type=MemberOf(LogFormat),
        default=LogFormat.TEXT.value,
        # Errors in other options are logged in this format, so the format is read
        # first.
        is_eager=True,
        expose_value=exposed,
        callback=_set_format,
        help="Format of the log on standard error: text, or one JSON object per line.",
    )


def _set_format(
    context: click.Context, parameter: click.Parameter, value: LogFormat
) -> LogFormat:
    set_log_format(value)
    return value


json_option = setting(
    "--json",
    "as_json",
    is_flag=True,
    panel=Panel.OUTPUT,
    help="Print one JSON object; for a list, print one JSON object per line.",
)
"""Adds ``--json``; the command gets ``as_json``."""


def format_option(
    default: str,
    help: str,  # noqa: A002 - click's own word
) -> Decorator:
    """Add ``--format``, which accepts the value of `default`, and ``json``.

    The command gets the parameter ``as_json``, which is True for ``json``.
    """
    return setting(
        "--format",
        "as_json",
        type=click.Choice([default, "json"]),
        default=default,
        callback=lambda context, parameter, form: form == "json",
        panel=Panel.OUTPUT,
        help=help,
    )


report_option = setting(
    "--report",
    type=FILE,
    panel=Panel.OUTPUT,
    help="Write the report to this file when the job ends.",
)


def secret_setting(
    flag: str,
    *names: str,
    help: str,  # noqa: A002 - click's own word
    **attributes: Any,
) -> Decorator:
    """Return an option that only the environment and the configuration file can set.

    If other users can read a configuration file that contains secrets, a warning is
    logged.
    """
    return setting(
        flag,
        *names,
        cls=Secret,
        callback=_secret_value,
        help=f"{help} Set the value only in the environment or the --config file.",
        **attributes,
    )


class Secret(_Setting):
    """An option whose value must not occur in a message."""


def _secret_value(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    assert parameter.name is not None  # noqa: S101 - an option has a name
    if (path := context.meta.pop(FILE_WITH_SECRETS, None)) is not None:
        _warn_if_others_can_read(path)
    source = context.get_parameter_source(parameter.name)
    if source is ParameterSource.COMMANDLINE:
        flag = parameter.opts[0]
        message = (
            "all users of this machine can read the command line: give the value as "
            f"{parameter.envvar}, or as {flag.removeprefix('--')} in the --config file"
        )
        raise click.BadParameter(message, param=parameter)
    return value


def _warn_if_others_can_read(path: Path) -> None:
    if path.stat().st_mode & 0o077:
        logger.warning(
            "%s contains a password, and other users can read it: run chmod 600 %s",
            path,
            shlex.quote(str(path)),
        )


def nearest_given(*names: str) -> str | None:
    """Return which of the named options has precedence; None if none of them is given.

    The command line precedes the environment, and the environment precedes the file.

    Raises:
        click.UsageError: The same place with the highest precedence, such as the
            command line, gives more than one of the options.
    """
    context = click.get_current_context()
    sources = {name: context.get_parameter_source(name) for name in names}
    given = {
        name: source
        for name, source in sources.items()
        if source is not None and source < ParameterSource.DEFAULT
    }
    nearest = [name for name in given if given[name] == min(given.values())]
    if len(nearest) > 1:
        *others, last = (
            option.opts[0]
            for option in context.command.params
            if option.name in names and not getattr(option, "hidden", False)
        )
        message = f"give only one of {', '.join(others)} and {last}"
        raise click.UsageError(message)
    return nearest[0] if nearest else None


def option_group(
    argument: str,
    options: Sequence[Decorator],
    build: Callable[..., Any],
    *,
    panel: Panel | None = None,
    shared: Collection[str] = (),
) -> Decorator:
    """Return a decorator that adds options and passes `build`'s result to the command.

    `argument` is the name of the command's parameter that gets the result. `build` gets
    the values of `options`. If a decorator above this one adds a value with the name of
    a parameter of `build`, `build` also gets this value. All other parameters of
    `build` need a default. `build` raises `click.UsageError` if values contradict one
    another.

    The help text keeps the order of the options. It shows an option that has no panel
    of its own below the title `panel`. The command does not get the values that `build`
    gets, except the values that `shared` names.
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
        outer = len(_parameters(decorated))
        for option in reversed(options):
            decorated = option(decorated)
        for parameter in _parameters(decorated)[outer:]:
            parameter.panel = parameter.panel or panel
        return decorated

    return add


def _names_of(options: Sequence[Decorator]) -> set[str]:

    def command() -> None: ...

    for option in options:
        option(command)
    return {parameter.name for parameter in _parameters(command) if parameter.name}


def _parameters(command: Callable[..., None]) -> list[RichOption]:
    return getattr(command, "__click_params__", [])
