"""Commands with a help text in groups; only the help text needs rich.

Commands report errors as click does, but without a frame, because errors are lines of
the log.
"""

from __future__ import annotations

from typing import Any

import click
from rich_click import RichCommand, RichGroup


class Command(RichCommand):
    """A command that takes options."""

    # rich-click would draw a frame around an error, and break its line.
    main: Any = click.Command.main


class Group(RichGroup):
    """A command that has commands below it."""

    # As above.
    main: Any = click.Group.main
    command_class = Command


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
"""Settings of the program's context. The contexts of commands inherit these
settings."""
