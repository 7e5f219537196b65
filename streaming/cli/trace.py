"""``sds-monitor trace``."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import click

from sds_core.text import shown
from streaming.cli import commands
from streaming.cli.incident_options import source_options
from streaming.cli.kafka_options import kafka_reading_options
from streaming.cli.plan_options import html_option
from streaming.cli.settings import Panel, log_option, setting
from streaming.cli.values import MemberOf
from streaming.cli.window_options import window_options
from streaming.settings import Window

_LONGEST_ID = 512
"""Maximum characters of an id; a frame with a longer id is a dead letter."""


class TraceForm(enum.StrEnum):
    """Form of the output."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"
    PLANTUML = "plantuml"


class TraceRequest(NamedTuple):
    """Which messages to trace: by id or Waku hash, sender, or unresolved incidents.

    `channel` is a channel or group; None if it is unknown. `window` has record times;
    an omitted bound means no bound.
    """

    message_id: str | None
    sender: str | None
    incidents: bool
    channel: str | None
    window: Window

    @property
    def what(self) -> str:
        """The subject of the trace, for error messages."""
        if self.message_id is not None:
            return f"message {shown(self.message_id)}"
        if self.sender is not None:
            return f"sender {shown(self.sender)}"
        return f"unresolved incidents of channel {shown(self.channel)}"

    def check(self) -> None:
        """Raise `click.UsageError` if the options contradict one another."""
        given = [self.message_id is not None, self.sender is not None, self.incidents]
        if sum(given) != 1:
            message = "give one of MESSAGE_ID, --sender and --incidents"
            raise click.UsageError(message)
        if self.incidents and self.channel is None:
            message = "--incidents needs --channel: give the channel"
            raise click.UsageError(message)
        for name in (self.message_id, self.sender, self.channel):
            try:
                (name or "").encode()
            except UnicodeEncodeError:
                message = f"{shown(name)} is not UTF-8: give an id or a name in UTF-8"
                raise click.UsageError(message) from None
        for name in (self.message_id, self.sender):
            if name is not None and not 0 < len(name) <= _LONGEST_ID:
                message = f"an id has {len(name):,} characters: give 1 to {_LONGEST_ID}"
                raise click.UsageError(message)


@commands.command(
    "trace", "sds-monitor trace 0x3f… --channel my-channel --bootstrap localhost:9092"
)
@kafka_reading_options
@source_options
@setting(
    "--channel",
    panel=Panel.CHANNELS,
    help="Channel of the message; if --views is given, group of the message.",
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
    help="Continue with new records until Ctrl-C.",
)
@setting(
    "--format",
    "form",
    type=MemberOf(TraceForm),
    default=TraceForm.TEXT.value,
    panel=Panel.OUTPUT,
    help="Print text, one JSON object a line, or a sequence diagram.",
)
@setting(
    "--anonymise",
    is_flag=True,
    panel=Panel.OUTPUT,
    help="Replace the names of participants, for bug reports.",
)
@html_option
@log_option()
@click.argument("message_id", required=False, envvar="SDS_MONITOR_MESSAGE_ID")
def command(
    message_id: str | None,
    sender: str | None,
    incidents: bool,
    channel: str | None,
    window: Window,
    **options: Any,
) -> None:
    """Print what happened to a message: every frame that concerns it.

    MESSAGE_ID is the id of a message, or the Waku hash of one of its copies. The
    command judges the message by the same rules as the monitor. The command writes
    nothing to Kafka.

    If --from is omitted, the command searches --api, --from-report or --history for the
    incident of the message. If --from, --api, --from-report and --history are all
    omitted, the command searches the last 24 hours of the topic.
    """
    from streaming.cli.actions.trace import trace

    request = TraceRequest(message_id, sender, incidents, channel, window)
    request.check()
    trace(request=request, **options)
