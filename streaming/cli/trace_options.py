"""Options of ``sds-monitor trace``: the messages to trace, and the output's form."""

from __future__ import annotations

import enum
from typing import NamedTuple

import click

from sds_core.text import shown
from streaming.settings import Window

_LONGEST_ID = 512
"""Maximum number of characters in an id; a frame with a longer id is a dead letter."""


class TraceForm(enum.StrEnum):
    """Form of the output."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"
    PLANTUML = "plantuml"


class TraceRequest(NamedTuple):
    """The messages to trace: one message, a sender's newest, or those of incidents.

    `message_id` is the id of a message, or the Waku hash of one of its copies. If
    `incidents`, the messages of all unresolved incidents of `channel` are traced.
    `channel` is a channel or group; None if the user does not name it. `window` limits
    the record times; for an omitted option, it has the bound of `ALL_TIMES`.
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
        """Raise `click.UsageError` if options are missing, contradictory or invalid."""
        given = [self.message_id is not None, self.sender is not None, self.incidents]
        if sum(given) != 1:
            message = "give exactly one of MESSAGE_ID, --sender and --incidents"
            raise click.UsageError(message)
        if self.incidents and self.channel is None:
            message = "--incidents needs --channel: give the channel"
            raise click.UsageError(message)
        for name in (self.message_id, self.sender):
            if name is not None and not 0 < len(name) <= _LONGEST_ID:
                message = (
                    f"an id has {len(name):,} characters, but 1 to {_LONGEST_ID} are "
                    "allowed"
                )
                raise click.UsageError(message)
