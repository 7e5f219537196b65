"""Command line of sds-monitor; a file per command.

Commands are imported when they are called, so that those without Spark start fast.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.metadata import version

import click

from connectors.broker.errors import BrokerError
from connectors.java import JavaMissing
from connectors.kafka.settings import KafkaUnreachable, RecordsLost, TopicMissing
from streaming.cli.log import begin_log, logger
from streaming.cli.log_option import asked_format
from streaming.cli.signals import end_on_signals
from streaming.cli.streams import outlive_reader

FINE = 0
FINDING = 1
WRONG_USE = 2
UNREACHABLE = 3

_COMMANDS = {
    "demo": "Everything on this machine, ending with truth beside findings.",
    "simulate": "Simulated participants on a lossy network, mirrored into Kafka.",
    "broker": "The embedded Kafka broker, in the foreground.",
    "mirror": "What passes Waku nodes, into Kafka.",
    "run": "The monitor.",
    "replay": "The same job over a past window, apart from the live one.",
    "incidents": "The messages behind the figures, and why.",
    "inspect": "One frame, decoded for a person.",
    "dead-letter": "What could not be decoded, and its way back.",
    "export": "Records of a topic to a file that can be shared.",
}


class _LazyGroup(click.Group):
    """Imports a command's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        command = import_module(f"streaming.cli.{module}").command
        assert isinstance(command, click.Command)  # noqa: S101 - our own modules
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("sds-monitor"), prog_name="sds-monitor")
def group() -> None:
    """Watch the reliability of SDS channels.

    sds-monitor reads SDS traffic mirrored into Kafka and tells, from outside, whether
    messages are acknowledged, missing and repaired.

    Exit codes: 0 fine, 1 a finding, 2 wrong use, 3 something needed is unreachable.
    """


def main() -> None:
    """Entry point: errors in one line, exit codes as documented."""
    arguments = sys.argv[1:]
    outlive_reader()
    begin_log(asked_format(arguments, os.environ))
    # Whether it has a table to be read on SIGHUP may be known from a file alone.
    end_on_signals(hold_hangup=arguments[:1] == ["run"])
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
        logger.critical("an error that nobody foresaw: %r", error, exc_info=True)
        sys.exit(FINDING)


def _fail(message: str, code: int) -> None:
    logger.critical("%s", message)
    sys.exit(code)
