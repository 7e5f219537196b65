"""Commands whose help text groups the options; only the help text needs rich.

Commands report errors without the frame that rich-click draws, because errors are lines
of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from rich_click import RichCommand, RichGroup

from streaming.cli.config_file import config_option


class Command(RichCommand):
    """A command that takes options."""

    # rich-click would draw a frame around an error, and break its line.
    main: Any = click.Command.main


class Group(RichGroup):
    """A command that has subcommands."""

    # See `Command`.
    main: Any = click.Group.main
    command_class = Command


def command(
    name: str, example: str, group: click.Group | None = None
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator for a command that has ``--config`` and belongs to a group.

    A command that passes all its options to one function in `streaming.cli.actions`
    passes them by name.
    """

    def declare(function: Callable[..., None]) -> click.Command:
        declared = click.command(name, cls=Command, epilog=f"Example: {example}")(
            config_option(function)
        )
        if group is not None:
            group.add_command(declared)
        return declared

    return declare


CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "rich_help_config": {
        # Without frames and colours, the help text is plain text.
        "theme": "default-slim",
        "options_panel_title": "General",
        "text_paragraph_linebreaks": "\n\n",
        "padding_helptext_first_line": (0, 0, 1, 0),
    },
}
"""Settings of the program's context, which the contexts of commands inherit."""
