"""Command line of sds-monitor.

A command's module is imported when the command is called, and only declares options;
what the command does is in `streaming.cli.actions`.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version

import click

from connectors.broker.errors import BrokerError
from connectors.java import JavaMissing
from connectors.kafka.settings import KafkaUnreachable, RecordsLost, TopicMissing
from connectors.storage.disk import REMEDIES
from streaming.cli.log import logger, requested_format, start_log
from streaming.cli.signals import end_on_signals
from streaming.cli.streams import survive_closed_output

FINE = 0
FINDING = 1
WRONG_USE = 2
UNREACHABLE = 3


class Unreachable(click.ClickException):
    """Something that a command needs does not answer."""

    exit_code = UNREACHABLE


_COMMANDS = {
    "prepare": "Make later starts of other commands faster.",
    "demo": "Run everything on this machine, and compare truth and findings.",
    "simulate": "Write traffic of simulated participants to Kafka.",
    "broker": "Run the embedded Kafka broker.",
    "mirror": "Copy traffic of Waku nodes into Kafka.",
    "import": "Write a file of records to Kafka.",
    "audit": "Compare a mirror with a Waku store or with another mirror.",
    "run": "Run the monitor.",
    "doctor": "Check what the monitor needs, and say what to do.",
    "rebuild": "Make a new checkpoint of all that the topic holds.",
    "replay": "Report on a past window, apart from the live job.",
    "incidents": "List the messages behind the figures, and why.",
    "trace": "Print what happened to a message.",
    "plan": "Look ahead: costs, and when limits are reached.",
    "forget": "Forget channels that are not used any more.",
    "inspect": "Decode one frame.",
    "dead-letter": "List, print and replay records that could not be decoded.",
    "export": "Write records of a topic to a file.",
}
"""Command -> its short help."""

_PLACES = {
    "doctor": "run.doctor_command",
    "import": "import_.command",
    "prepare": "broker.prepare_command",
    "rebuild": "run.rebuild_command",
}
"""Command -> module and function, where that is not the command's own module."""


class _LazyGroup(click.Group):
    """Imports a command's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
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
        except click.exceptions.NoSuchCommand as error:
            # click suggests only commands that are imported already.
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=_COMMANDS, ctx=ctx
            ) from None

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("sds-monitor"), prog_name="sds-monitor")
def group() -> None:
    """Watch the reliability of SDS channels.

    sds-monitor reads SDS traffic mirrored into Kafka and reports, from outside, whether
    messages are acknowledged, missing and repaired.

    Exit codes: 0 fine, 1 a finding, 2 wrong use, 3 something needed is unreachable.
    """


def main() -> None:
    """Entry point: errors in one line, exit codes as documented."""
    arguments = sys.argv[1:]
    # Arrow's own allocator keeps what a compaction of the history took, and more each
    # time. Read when pyarrow is imported, which no command has done yet.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    survive_closed_output()
    start_log(requested_format(arguments, os.environ))
    # Connections, topics and files of the history may need more than the usual 1,024.
    _raise_descriptor_limit()
    # SIGHUP means something else if `run` has a table of channels, which its
    # configuration file may name.
    end_on_signals(defer_hangup=arguments[:1] == ["run"])
    try:
        sys.exit(group(standalone_mode=False) or FINE)
    except click.exceptions.Abort:
        sys.exit(FINE)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except (KafkaUnreachable, TopicMissing, BrokerError, JavaMissing) as error:
        _fail(str(error), UNREACHABLE)
    except RecordsLost as error:
        _fail(str(error), FINDING)
    except Exception as error:
        if isinstance(error, OSError) and (line := _failed_disk(error)):
            _fail(line, FINDING)
        logger.critical("unexpected error: %r", error, exc_info=True)
        sys.exit(FINDING)


def _failed_disk(error: OSError) -> str | None:
    """Return what to do if a disk is full or fails; None if the error is another."""
    from streaming.failure import with_remedy

    # Nothing but standard output is written by a descriptor alone.
    line = f"{error.filename or 'output'}: {error.strerror}"
    return with_remedy(line) if error.errno in REMEDIES else None


def _fail(message: str, code: int) -> None:
    logger.critical("%s", message)
    sys.exit(code)


def _raise_descriptor_limit() -> None:
    """Raise the soft limit of open descriptors to the hard one, as far as allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS does not allow the hard limit "unlimited".
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
