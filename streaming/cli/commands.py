"""Click commands whose help text shows the options in groups.

rich-click draws only the help text. Errors are lines of the log, so commands report
them without the frame that rich-click would draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from rich_click import RichCommand, RichGroup

from streaming.cli.config_file import config_option


class Command(RichCommand):
    """A command that takes options."""

    # The `main` of rich-click would draw a frame around an error, and wrap its line.
    main: Any = click.Command.main


class Group(RichGroup):
    """A command that has subcommands."""

    # See `Command`.
    main: Any = click.Group.main
    command_class = Command


def command(
    name: str, example: str, group: click.Group | None = None
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that makes a function a command with the option ``--config``.

    If `group` is given, the command is added to it. If the function only passes its
    options to a function of `streaming.cli.actions`, it takes them as ``**options``.
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
        # This theme draws no frames around groups of options.
        "theme": "default-slim",
        "options_panel_title": "General",
        "text_paragraph_linebreaks": "\n\n",
        "padding_helptext_first_line": (0, 0, 1, 0),
    },
}
"""Settings of the program's click context. The contexts of commands inherit them."""
