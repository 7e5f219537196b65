"""Types for what the failures behind a bad verdict have in common.

`suspicion.py` makes them. `causes.py` derives from these facts why a channel fails.
"""

from __future__ import annotations

import msgspec


class Origin(msgspec.Struct, array_like=True, frozen=True):
    """The participant that sent all failed messages.

    A message failed if it is lost to at least one participant.

    Attributes:
        failed: Number of failed messages.
        sent: Number of the sender's messages from the first failed message to the last
            failed message.
        arrived: Number of arrived messages from other senders in the period of `sent`.
            A message counts if a participant that lacks a failed message received it.
            If the failed messages are lost to all participants, an arrival at any
            participant counts.
    """

    name: str
    failed: int
    sent: int
    arrived: int


class Recipient(msgspec.Struct, array_like=True, frozen=True):
    """The participant to which all failed messages are lost.

    Attributes:
        arrived: Number of known deliveries of the failed messages to other
            participants.
    """

    name: str
    failed: int
    arrived: int


class Unrequested(msgspec.Struct, array_like=True, frozen=True):
    """Lost deliveries for which requests were due, but no participant sent any.

    A request was due under two conditions: a later message of the same sender had
    arrived, and the participant sent a frame after the maximum request time.

    Attributes:
        messages, participants: Numbers of distinct messages and participants.
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
    """What failures have in common; None for a kind without a known common property."""

    origin: Origin | None = None
    recipient: Recipient | None = None
    unrequested: Unrequested | None = None
    abandoned: Abandoned | None = None
