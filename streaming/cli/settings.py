"""Settings of every command: flag over environment over file over default.

Each flag ``--some-name`` can also be given as ``SDS_MONITOR_SOME_NAME`` or, with
``--config FILE``, as ``some-name = …`` in a TOML file: at its top for all commands,
in a table named for a command for that one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def setting(
    flag: str, *names: str, **attributes: Any
) -> Callable[[_Command], _Command]:
    """A flag that the environment and the configuration file can give as well."""
    name = flag.split("/")[0].removeprefix("--")
    variable = "SDS_MONITOR_" + name.replace("-", "_").upper()
    attributes.setdefault("show_default", attributes.get("default") is not None)
    return click.option(flag, *names, envvar=variable, **attributes)


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
        given = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{path} cannot be read as TOML: {error}"
        raise click.BadParameter(message, param=parameter) from None
    command = context.command
    names = {
        p.opts[0].removeprefix("--"): p.name
        for p in command.params
        if isinstance(p, click.Option) and p.name
    }
    shared = {k: v for k, v in given.items() if not isinstance(v, dict)}
    own = given.get(command.name or "", {})
    unknown = sorted(own.keys() - names.keys())
    if unknown:
        message = (
            f"{path} sets {unknown[0]} for {command.name}, which it does not know: "
            f"it knows {', '.join(sorted(names))}"
        )
        raise click.BadParameter(message, param=parameter)
    for name, value in (shared | own).items():
        if isinstance(value, list | dict):
            message = f"{path} sets {name} to {value!r}, which is no single value"
            raise click.BadParameter(message, param=parameter)
    context.default_map = {
        names[name]: value if isinstance(value, bool) else str(value)
        for name, value in (shared | own).items()
        if name in names
    }


class Time(click.ParamType[str | int]):
    """A time, as Unix ms, or one of some words.

    Args:
        words: What may stand in place of a time.
    """

    def __init__(self, *words: str) -> None:
        self._words = words
        self.name = "|".join([*words, "TIME"])

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | int:
        """The word, or the time in Unix ms."""
        text = str(value)
        if text in self._words:
            return text
        try:
            if text.isdigit():
                time = datetime.fromtimestamp(int(text) / 1000, UTC)
            else:
                time = datetime.fromisoformat(text).astimezone()
            unix_ms = round(time.timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            unix_ms = -1
        # Times before 1970 are none of a record's.
        if unix_ms < 0:
            known = ", ".join([*self._words, "a time such as 2026-11-21T08:00:00Z"])
            message = f"{text!r} is neither {known}, nor Unix milliseconds"
            self.fail(message, param, ctx)
        return unix_ms
