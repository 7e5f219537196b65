"""Types of the common properties of the failures behind a bad verdict.

`suspicion.py` finds these properties. From them, `causes.py` derives why a channel
fails.
"""

from __future__ import annotations

import msgspec


class Origin(msgspec.Struct, array_like=True, frozen=True):
    """The participant that sent all failed messages.

    A message failed if it is lost to at least one participant.

    Attributes:
        failed: Number of failed messages.
        sent: Number of messages that the sender sent from the first to the last failed
            message.
        arrived: Number of messages of other senders that arrived in the same period. A
            message counts if it arrived at a participant that lacks a failed message.
            If no participant received the failed messages, arrival at any participant
            is enough.
    """

    name: str
    failed: int
    sent: int
    arrived: int


class Recipient(msgspec.Struct, array_like=True, frozen=True):
    """The participant to which all failed messages are lost.

    Attributes:
        arrived: Number of known deliveries of failed messages to other participants.
    """

    name: str
    failed: int
    arrived: int


class Unrequested(msgspec.Struct, array_like=True, frozen=True):
    """Lost deliveries for which repair requests were due, but none was sent.

    A request was due if the participant had received a later message of the same
    sender, and sent a frame at least the maximum repair window after that message.

    Attributes:
        messages, participants: Numbers of distinct messages and participants in these
            deliveries.
    """

    deliveries: int
    messages: int
    participants: int


class Abandoned(msgspec.Struct, array_like=True, frozen=True):
    """Messages whose retries ended without an acknowledgement.

    Attributes:
        senders: Ids of the messages' senders, at most 20.
        least, most: Minimum and maximum number of retries per message.
    """

    messages: int
    senders: list[str]
    least: int
    most: int


class Suspects(msgspec.Struct, array_like=True, frozen=True):
    """What failures have in common. A property that was not found is None."""

    origin: Origin | None = None
    recipient: Recipient | None = None
    unrequested: Unrequested | None = None
    abandoned: Abandoned | None = None
