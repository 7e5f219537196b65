"""Types for what the failures behind a bad verdict have in common.

`suspicion.py` finds these common properties. `causes.py` derives from the properties
why a channel fails.
"""

from __future__ import annotations

import msgspec


class Origin(msgspec.Struct, array_like=True, frozen=True):
    """The participant that sent all failed messages.

    A message failed if it is lost to at least one participant.

    Attributes:
        failed: Number of failed messages.
        sent: Number of messages that this participant sent in the period from the first
            to the last failed message.
        arrived: Number of other participants' messages from this period that arrived at
            a participant with a lost delivery. If all failed messages are lost to all
            participants, a message counts if it arrived at any participant.
    """

    name: str
    failed: int
    sent: int
    arrived: int


class Recipient(msgspec.Struct, array_like=True, frozen=True):
    """The participant to which all failed messages are lost.

    Attributes:
        failed: Number of failed messages.
        arrived: Number of deliveries of failed messages to other participants, as far
            as frames show them. A message counts once for each such participant.
    """

    name: str
    failed: int
    arrived: int


class Unrequested(msgspec.Struct, array_like=True, frozen=True):
    """Lost deliveries for which repair requests were due, but no participant sent one.

    A request for a lost message was due if the participant received a later message of
    the lost message's sender, and if the participant sent a frame at least the maximum
    repair window after this later message.

    Attributes:
        deliveries: Number of these lost deliveries.
        messages, participants: Number of distinct messages, and number of distinct
            participants, in these deliveries.
    """

    deliveries: int
    messages: int
    participants: int


class Abandoned(msgspec.Struct, array_like=True, frozen=True):
    """Unacknowledged messages that their senders no longer retry.

    Attributes:
        messages: Number of these messages.
        senders: Ids of the messages' senders, at most 20.
        least, most: Lowest and highest number of retries of one of these messages.
    """

    messages: int
    senders: list[str]
    least: int
    most: int


class FullFilters(msgspec.Struct, array_like=True, frozen=True):
    """Filters of participants that were heard in the verdict's window.

    Attributes:
        full: Number of filters with a false-positive rate above the limit.
        known: Number of all filters.
        m_bits, k: Parameters of the filter with the highest rate.
    """

    full: int
    known: int
    m_bits: int
    k: int


class Suspects(msgspec.Struct, array_like=True, frozen=True):
    """What the failures behind a bad verdict have in common.

    A property is None if the failures do not share it, or if it was not searched for.
    """

    origin: Origin | None = None
    recipient: Recipient | None = None
    unrequested: Unrequested | None = None
    abandoned: Abandoned | None = None
    filters: FullFilters | None = None
