"""Writes the reference of the command line into docs/cli.md, from click.

An option that several commands take in the same way is listed once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import click

from docs.page_part import PagePart, table
from streaming.cli import COMMANDS, group
from streaming.cli.config_file import TABLE_OF
from streaming.cli.exit_codes import ExitCode

PROGRAM = "sds-monitor"
PART = PagePart("cli.md", "make_cli", "the reference")

_SHARED_FROM = 3
"""Commands that take an option, from which on it is listed once for all."""

_ALONE_FROM = 2
"""The same, if no other option has its name."""

_RESTART = """\
After code 2, a restart fails in the same way; after every other error code, restart the service.
The [systemd units](operations.md#systemd) restart the service except after code 2; Kubernetes always restarts it."""  # noqa: E501 - one sentence per line


class Row(NamedTuple):
    """An option as the page lists it; its cells are Markdown."""

    panel: str
    flags: str
    default: str
    text: str


def commands(
    command: click.Command = group, name: str = PROGRAM
) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all commands below it, with their full names."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for inner in command.list_commands(context):
            below = command.get_command(context, inner)
            assert below is not None  # noqa: S101 - the group lists it
            yield from commands(below, f"{name} {inner}")


def options(command: click.Command) -> list[click.Option]:
    """Return the options of a command that its help text shows, but for its own."""
    return [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        and not (parameter.hidden or (parameter.is_eager and not parameter.envvar))
    ]


def row(command: click.Command, option: click.Option) -> Row:
    """Return the cells of an option."""
    context = click.Context(command)
    extra = option.get_help_extra(context)
    flags = [f"`{flag}`" for flag in (*option.opts, *option.secondary_opts)]
    if not option.is_flag:
        # The range follows the help.
        metavar = option.make_metavar(context).removesuffix(" RANGE")
        flags[-1] = f"{flags[-1][:-1]} {metavar}`"
    limits = f" Range: {extra['range']}." if "range" in extra else ""
    return Row(
        getattr(option, "panel", None) or "General",
        ", ".join(flags).replace("|", "\\|"),
        "required" if option.required else str(extra.get("default", "")),
        f"{option.help}{limits}".replace("|", "\\|"),
    )


def exit_codes() -> str:
    """Return the table of the exit codes."""
    return _table(("code", "meaning"), ((str(c.value), c.meaning) for c in ExitCode))


def block() -> str:
    """Return the reference, with its marks."""
    rows = {
        name: [row(command, option) for option in options(command)]
        for name, command in commands()
    }
    for name, source in TABLE_OF.items():
        taken = rows[f"{PROGRAM} {source}"]
        rows[f"{PROGRAM} {name}"] = [
            one for one in rows[f"{PROGRAM} {name}"] if one not in taken
        ]
    below = {f"{PROGRAM} {name}" for name in TABLE_OF}
    uses = Counter(one for given in rows.values() for one in given)
    names = Counter(_first_flag(one.flags) for one in uses)
    shared = [
        one
        for one, count in uses.items()
        if count
        >= (_ALONE_FROM if names[_first_flag(one.flags)] == 1 else _SHARED_FROM)
    ]
    takers = sum(bool(given) for name, given in rows.items() if name not in below)
    every = [one for one in shared if uses[one] == takers]
    parts = [
        "## Exit codes",
        exit_codes(),
        _RESTART,
        "## Commands",
        *_overview(),
        "## Options of several commands",
        f"All commands take {', '.join(_first_flag(one.flags) for one in every)}.\n"
        "Below a command, *Also* lists further options of the command. If *Also* names "
        "a table of this section, the command takes all options in the table.",
        *_panels(shared),
    ]
    limited = [one for one in shared if one not in every]
    for name, command in commands():
        if name == PROGRAM:
            continue
        own = [one for one in rows[name] if one not in shared]
        parts += [f"## {name}", _sentences(command.help or ""), *_panels(own)]
        if common := [one for one in rows[name] if one in limited]:
            link = "[Also](#options-of-several-commands)"
            parts.append(f"{link}: {', '.join(_names(common, limited))}.")
        if (other := TABLE_OF.get(name.removeprefix(f"{PROGRAM} "))) is not None:
            parts.append(
                f"The command also has all options of [{other}](#{PROGRAM}-{other})."
            )
    return "\n\n".join([PART.begin, *parts, PART.end])


def _overview() -> Iterator[str]:
    for title, listed in COMMANDS.items():
        rows = ((f"[{name}](#{PROGRAM}-{name})", text) for name, text in listed.items())
        yield _table((title, ""), rows)


def _names(common: Sequence[Row], shared: Sequence[Row]) -> Iterator[str]:
    """Yield the title of each table that a command takes whole, and other options."""
    for panel in dict.fromkeys(one.panel for one in common):
        taken = [one for one in common if one.panel == panel]
        if len(taken) > 1 and taken == [one for one in shared if one.panel == panel]:
            yield f"*{panel}*"
        else:
            yield from (_first_flag(one.flags) for one in taken)


def _panels(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table for each title, in the order of their first options."""
    for panel in dict.fromkeys(one.panel for one in rows):
        cells = [one[1:] for one in rows if one.panel == panel]
        if any(default for _, default, _ in cells):
            yield _table((panel, "default", ""), cells)
        else:
            yield _table((panel, ""), ((flags, text) for flags, _, text in cells))


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(table(headings, rows))


def _sentences(text: str) -> str:
    """Return a help text with one sentence a line."""
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    return "\n\n".join(re.sub(r"(?<=\.) (?=[A-Z`])", "\n", part) for part in paragraphs)


def _first_flag(flags: str) -> str:
    return f"`{re.findall(r'--[a-z-]+', flags)[0]}`"


if __name__ == "__main__":
    PART.write(block())
