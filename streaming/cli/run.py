"""``sds-monitor run``, and `doctor` and `rebuild`, which take the same options."""

from __future__ import annotations

from typing import Any

from streaming.cli import commands
from streaming.cli.run_options import RunSettings, checked_url, run_options
from streaming.cli.settings import Panel, format_option, setting
from streaming.cli.values import Parsed


@commands.command(
    "run", "sds-monitor run --bootstrap localhost:9092 --checkpoint ./state"
)
@run_options
def command(settings: RunSettings) -> None:
    """Read SDS traffic from Kafka, and report how reliable each channel is.

    The command serves the status page at / and Prometheus metrics at /metrics. On a
    terminal, the command also shows a table of the channels with the worst verdicts.

    You can kill the command at any moment. If you restart the command with the same
    checkpoint, all figures continue where they ended. On SIGHUP, the command reads the
    --channels file again.
    """
    from streaming.cli.actions.run import run

    run(settings)


@commands.command(
    "doctor", "sds-monitor doctor --bootstrap localhost:9092 --checkpoint ./state"
)
@format_option("text", "Print lines of text, or one JSON document.")
@setting(
    "--alertmanager",
    type=Parsed("URL", checked_url),
    panel=Panel.WEB,
    help="Also check that the Alertmanager at this URL answers.",
)
@run_options
def doctor_command(**options: Any) -> None:
    """Before a monitor runs, check that it has what it needs.

    The command takes the options of `run`, and reads the table [run] of the --config
    file. The command checks Java, memory, disk space, file descriptors, port, clock and
    certificates. The command also checks the checkpoint, Prometheus, Alertmanager and
    Kafka. In Kafka, the command checks the access rights and settings of the monitor's
    topics, and the number of unread records. The command prints one line per check. The
    line of a failed check contains the remedy.

    If a check fails, the exit code is 1.
    """
    from streaming.cli.actions.doctor import doctor

    doctor(**options)


@commands.command(
    "rebuild", "sds-monitor rebuild --bootstrap localhost:9092 --checkpoint ./new"
)
@run_options
def rebuild_command(settings: RunSettings) -> None:
    """Make a new checkpoint from all records of the topic.

    Use the command to change the number of state partitions, to change the settings in
    [observer], or to replace a damaged checkpoint. The command takes the options of
    `run`, and reads the table [run] of the --config file. A rebuild can run beside the
    live job, because a rebuild writes no dead letters, offsets or history to Kafka.

    Afterwards, start `run` with the new checkpoint.
    """
    from streaming.cli.actions.rebuild import rebuild

    rebuild(settings)
