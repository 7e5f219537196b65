"""What a user asks ``sds-monitor trace`` for."""

from __future__ import annotations

import enum
from typing import NamedTuple

import click

from sds_core.text import shown
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
    """Which messages to trace: by id, Waku hash, sender, or unresolved incidents.

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
                message = (
                    f"an id has {len(name):,} characters, but 1 to {_LONGEST_ID} are "
                    "allowed"
                )
                raise click.UsageError(message)
