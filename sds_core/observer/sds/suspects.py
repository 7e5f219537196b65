"""Whom and what the failures behind a bad verdict have in common.

`causes.py` says from it why a channel fails; `suspicion.py` finds it.
"""

from __future__ import annotations

import msgspec


class Origin(msgspec.Struct, array_like=True, frozen=True):
    """The participant that sent all messages that failed.

    A message failed if it is lost to everybody, or to a participant.

    Attributes:
        name: Participant id.
        failed: Number of the messages that failed.
        sent: Messages that it sent from the first of these to the last.
        arrived: Messages that others sent meanwhile, and that arrived at a participant
            that lacks one of the failed ones; at any, if they are lost to everybody.
    """

    name: str
    failed: int
    sent: int
    arrived: int


class Recipient(msgspec.Struct, array_like=True, frozen=True):
    """The participant to which all messages that failed are lost.

    Attributes:
        name: Participant id.
        failed: Number of the messages.
        arrived: Deliveries of the same messages to others that are shown.
    """

    name: str
    failed: int
    arrived: int


class Unrequested(msgspec.Struct, array_like=True, frozen=True):
    """Lost deliveries for which a request was due, while nobody requested anything.

    A request was due if a later message of the same sender had arrived, and the
    participant has spoken after the longest time in which it had to ask.

    Attributes:
        deliveries: Number of the deliveries.
        messages: Number of distinct messages.
        participants: Number of distinct participants.
    """

    deliveries: int
    messages: int
    participants: int


class Abandoned(msgspec.Struct, array_like=True, frozen=True):
    """Messages that were repeated, are not acknowledged, and are not repeated any more.

    Attributes:
        messages: Number of the messages.
        senders: Ids of their senders, at most 20.
        least, most: Least and greatest number of retries of one of them.
    """

    messages: int
    senders: list[str]
    least: int
    most: int


class Suspects(msgspec.Struct, array_like=True, frozen=True):
    """What failures have in common; None where they have not, or it is not known."""

    origin: Origin | None = None
    recipient: Recipient | None = None
    unrequested: Unrequested | None = None
    abandoned: Abandoned | None = None
