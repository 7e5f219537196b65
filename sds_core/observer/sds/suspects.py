"""What the failures behind a bad verdict have in common, as values.

`causes.py` derives from it why a channel fails; `suspicion.py` finds it.
"""

from __future__ import annotations

import msgspec


class Origin(msgspec.Struct, array_like=True, frozen=True):
    """The participant that sent all failed messages.

    A message failed if it is lost to all participants, or to one.

    Attributes:
        failed: Number of the messages that failed.
        sent: Number of messages that it sent from the first of these to the last.
        arrived: Number of messages of others meanwhile that arrived at a participant
            without one of the failed messages; at any participant, if the failed ones
            are lost to all.
    """

    name: str
    failed: int
    sent: int
    arrived: int


class Recipient(msgspec.Struct, array_like=True, frozen=True):
    """The participant to which all failed messages are lost.

    Attributes:
        arrived: Number of known deliveries of the same messages to others.
    """

    name: str
    failed: int
    arrived: int


class Unrequested(msgspec.Struct, array_like=True, frozen=True):
    """Lost deliveries for which a request was due, while no participant requested any.

    A request was due if a later message of the same sender had arrived, and the
    participant has sent a frame after the maximum time in which it had to request.

    Attributes:
        deliveries: Number of the deliveries.
        messages: Number of distinct messages.
        participants: Number of distinct participants.
    """

    deliveries: int
    messages: int
    participants: int


class Abandoned(msgspec.Struct, array_like=True, frozen=True):
    """Messages whose retries ended without an acknowledgement.

    Attributes:
        senders: Ids of their senders, at most 20.
        least, most: Minimum and maximum number of retries of one of them.
    """

    messages: int
    senders: list[str]
    least: int
    most: int


class Suspects(msgspec.Struct, array_like=True, frozen=True):
    """What failures have in common; None where nothing is common or known."""

    origin: Origin | None = None
    recipient: Recipient | None = None
    unrequested: Unrequested | None = None
    abandoned: Abandoned | None = None
