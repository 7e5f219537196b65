"""``sds-monitor trace``."""

from __future__ import annotations

from typing import Any

import click

from streaming.cli import commands
from streaming.cli.incident_options import source_options
from streaming.cli.kafka_options import kafka_reading_options
from streaming.cli.plan_options import html_option
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.trace_options import TraceForm, TraceRequest
from streaming.cli.values import TEXT, MemberOf
from streaming.cli.window_options import window_options
from streaming.settings import Window


@commands.command(
    "trace", "sds-monitor trace 0x3f… --channel my-channel --bootstrap localhost:9092"
)
@kafka_reading_options
@source_options
@setting(
    "--channel",
    panel=Panel.CHANNELS,
    help="Channel of the message; for a message of MVDS, its group.",
)
@setting(
    "--sender",
    panel=Panel.CHANNELS,
    help="Trace the newest messages of this participant.",
)
@setting(
    "--incidents",
    is_flag=True,
    panel=Panel.CHANNELS,
    help="Trace the messages of all unresolved incidents of --channel.",
)
@window_options(required=False)
@setting(
    "--follow",
    is_flag=True,
    panel=Panel.TIME,
    help="Also trace new records, until Ctrl-C.",
)
@setting(
    "--format",
    "form",
    type=MemberOf(TraceForm),
    default=TraceForm.TEXT.value,
    panel=Panel.OUTPUT,
    help="Print text, one JSON object per line, or a sequence diagram.",
)
@setting(
    "--anonymise",
    is_flag=True,
    panel=Panel.OUTPUT,
    help="For bug reports, replace the names of participants with participant-1 and "
    "so on.",
)
@html_option
@log_option()
@click.argument(
    "message_id", required=False, type=TEXT, envvar="SDS_MONITOR_MESSAGE_ID"
)
def command(
    message_id: str | None,
    sender: str | None,
    incidents: bool,
    channel: str | None,
    window: Window,
    **options: Any,
) -> None:
    """Print what happened to a message, with every frame that concerns it.

    MESSAGE_ID is the id of a message, or the Waku hash of one of its copies. The
    command applies the monitor's rules to the message. The command writes nothing to
    Kafka.

    If --from and --to are omitted, the command looks up the time of the message's
    incident in the source that --api, --from-report or --history gives. If these
    options are omitted too, the command searches the last 24 hours of the topic.
    """
    from streaming.cli.actions.trace import trace

    request = TraceRequest(message_id, sender, incidents, channel, window)
    request.check()
    trace(request=request, **options)
