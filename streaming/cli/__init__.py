"""Command line of sds-monitor.

The module of a command is imported only when the command is called. Such a module
declares the command's options; the command's action is in `streaming.cli.actions`.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from importlib import import_module

import click
from click.exceptions import NoSuchCommand
from rich_click import RichCommandPanel, RichContext, RichHelpFormatter

from streaming.cli.commands import CONTEXT, Command, Group
from streaming.cli.exit_codes import ExitCode
from streaming.cli.log import logger, requested_format, start_log
from streaming.cli.signals import end_on_signals
from streaming.cli.streams import set_up_streams

COMMANDS = {
    "Try it out": {
        "prepare": "Make other commands start faster.",
        "demo": "Run everything on this machine, and compare truth and findings.",
        "simulate": "Write traffic of simulated participants to Kafka.",
        "broker": "Run the embedded Kafka broker.",
    },
    "Bring traffic into Kafka": {
        "mirror": "Copy traffic of Waku nodes into Kafka.",
        "audit": "Compare a mirror with a Waku store or with another mirror.",
        "import": "Write a file of records to Kafka.",
        "export": "Write records of a topic to a file.",
    },
    "Run the monitor": {
        "run": "Run the monitor.",
        "doctor": "Check that the monitor has what it needs, and name remedies.",
        "rebuild": "Make a new checkpoint from all records of the topic.",
        "forget": "Forget channels that are no longer used.",
    },
    "Find the reason": {
        "incidents": "List lost, undelivered and unacknowledged messages, and why.",
        "trace": "Print what happened to a message.",
        "replay": "Report on a past window, independently of the live job.",
        "inspect": "Decode one frame.",
        "dead-letter": "List, print and replay records that could not be decoded.",
    },
    "Plan": {"plan": "Forecast what channels cost, and when they reach limits."},
}
"""Title of a group of commands -> name of a command -> short help of the command."""

_NAMES = tuple(name for commands in COMMANDS.values() for name in commands)

_PLACES = {
    "doctor": "run.doctor_command",
    "import": "import_.command",
    "prepare": "broker.prepare_command",
    "rebuild": "run.rebuild_command",
}
"""Name of a command -> module and function that implement the command.

Every other command is the function `command` in the module of the same name.
"""


class _LazyGroup(Group):
    """Imports the module of a command when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _NAMES:
            return None
        place = _PLACES.get(cmd_name, f"{cmd_name.replace('-', '_')}.command")
        module, _, function = place.partition(".")
        command = getattr(import_module(f"streaming.cli.{module}"), function)
        assert isinstance(command, click.Command)  # noqa: S101 - our own modules
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            # click itself would suggest only commands that are already imported.
            raise NoSuchCommand(
                error.command_name, possibilities=_NAMES, ctx=ctx
            ) from None

    def format_options(  # type: ignore[override]
        self, ctx: RichContext, formatter: RichHelpFormatter
    ) -> None:
        """List the commands with their short help, without importing their modules."""
        listed = Group(
            params=self.params,
            commands=[
                Command(name=name, help=text)
                for commands in COMMANDS.values()
                for name, text in commands.items()
            ],
            panels=[
                RichCommandPanel(title, commands=list(commands))
                for title, commands in COMMANDS.items()
            ],
        )
        alone = RichContext(listed, help_option_names=ctx.help_option_names)
        listed.format_options(alone, formatter)


@click.group(cls=_LazyGroup, context_settings=CONTEXT)
@click.version_option(package_name="sds-monitor", prog_name="sds-monitor")
def group() -> None:
    """Watch the reliability of SDS channels.

    sds-monitor reads SDS traffic that was copied into Kafka, and reports whether
    messages are acknowledged, missing or repaired.

    Exit codes: 0 success, 1 problems were found, 2 wrong use, 3 a needed service is
    unreachable, 4 the work failed, 70 unexpected error.
    """


def main() -> None:
    """Run the program; if it fails, log the error; exit with a documented code."""
    arguments = sys.argv[1:]
    # pyarrow reads this environment variable on import. With Arrow's own allocator, the
    # process would keep the memory that it used to compact the history.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    set_up_streams()
    start_log(requested_format(arguments, os.environ))
    # Connections, topics and the history may need more than the usual 1,024 open files.
    _raise_descriptor_limit()
    # If `run` has a channel table, SIGHUP reloads the table. The configuration file,
    # which is read later, may name a table, so `run` always defers SIGHUP.
    end_on_signals(defer_hangup=arguments[:1] == ["run"])
    try:
        sys.exit(group(standalone_mode=False) or ExitCode.FINE)
    except click.Abort:
        sys.exit(ExitCode.FINE)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except Exception as error:
        if (foreseen := _foreseen(error)) is not None:
            _fail(*foreseen)
        logger.critical("unexpected error: %r", error, exc_info=True)
        sys.exit(ExitCode.UNEXPECTED)


def _foreseen(error: Exception) -> tuple[str, ExitCode] | None:
    # To save time, these modules are imported only after an error: most commands end
    # without one.
    from connectors.broker.errors import BrokerError
    from connectors.java import JavaMissing
    from connectors.kafka.settings import KafkaUnreachable, RecordsLost, TopicMissing
    from connectors.storage.disk import REMEDIES

    if isinstance(error, (KafkaUnreachable, TopicMissing, BrokerError, JavaMissing)):
        return str(error), ExitCode.UNREACHABLE
    if isinstance(error, RecordsLost):
        return str(error), ExitCode.WRONG_USE
    if isinstance(error, FileNotFoundError) and _is_directory_gone():
        message = "the current directory was removed: change to another directory"
        return message, ExitCode.WRONG_USE
    if isinstance(error, OSError) and error.errno in REMEDIES:
        from streaming.failure import with_remedy

        # If the error has no file name, writing to standard output failed.
        line = f"{error.filename or 'output'}: {error.strerror}"
        return with_remedy(line), ExitCode.FAILED
    return None


def _is_directory_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _fail(message: str, code: int) -> None:
    logger.critical("%s", message)
    sys.exit(code)


def _raise_descriptor_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # If the hard limit is "unlimited", macOS refuses it as the limit of the process.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
