"""Figures of each participant, for the page of a channel (docs/figures.md, 5).

The job publishes the figures of a limited number of participants in the channel's
totals. Only the page and the API decode these figures: the decoded figures of thousands
of channels would take more memory than the channels' totals.
"""

from __future__ import annotations

from itertools import chain, islice

import msgspec

from sds_core.observer.sds.capacity import Capacity
from sds_core.observer.sds.deliveries import Deliveries
from sds_core.observer.sds.participants import Participants
from sds_core.observer.sds.totals import BloomGauge

MOST_PARTICIPANTS = 100
"""Maximum number of participants per channel whose figures are published.

If a channel has more participants, those with the most undelivered messages are
published. If these numbers are equal, those that lack the most messages are published;
if these are equal too, those whose latest first copy is newest.
"""


class ParticipantFigures(msgspec.Struct, array_like=True, frozen=True):
    """Figures of one participant. Times are event times in Unix ms.

    Attributes:
        heard_ms: Time of the participant's latest first copy.
        lacks: Number of messages that the participant lacks according to its frames.
        lacks_since_ms: Time of the participant's first frame that showed that it lacks
            one of these messages; None if the participant lacks no message.
        undelivered: Number of messages counted in `lacks` whose delivery to the
            participant counts as lost, because the delivery deadline has passed.
        failed: Number of deliveries to the participant that count as lost, without
            retracted losses. Unlike `undelivered`, it includes messages that have left
            the retention window.
        filter: The participant's newest bloom filter; None if unknown.
        epoch_messages: Number of first copies and retries from the participant in the
            current rate-limit epoch.
    """

    name: str
    heard_ms: int
    lacks: int = 0
    lacks_since_ms: int | None = None
    undelivered: int = 0
    delivered: int = 0
    failed: int = 0
    filter: BloomGauge | None = None
    epoch_messages: int = 0


class ParticipantTable(msgspec.Struct, array_like=True, frozen=True):
    """Figures of the participants of a channel.

    Attributes:
        participants: At most `MOST_PARTICIPANTS` participants, in descending order of
            `undelivered`, then of `lacks`, then of `heard_ms`.
        others: Number of participants that ever sent a first copy but are not in
            `participants`. Includes participants that have been silent for two
            retention windows.
    """

    participants: list[ParticipantFigures] = []
    others: int = 0


_DECODER = msgspec.msgpack.Decoder(ParticipantTable)


def unpack_participants(packed: bytes) -> ParticipantTable:
    """Decode `ChannelTotals.participant_table`; empty bytes give an empty table."""
    return _DECODER.decode(packed) if packed else ParticipantTable()


def pack_participants(
    participants: Participants, deliveries: Deliveries, capacity: Capacity, spoken: int
) -> bytes:
    """Encode the figures of the participants whose deliveries are tracked."""
    receivers = deliveries.receivers
    by_time = sorted(receivers, key=participants.last_ms, reverse=True)
    # The sort is stable, so participants with equal numbers stay in the order of
    # `by_time`.
    lacking = sorted(
        (by for by in by_time if receivers[by].missing),
        key=lambda by: (len(receivers[by].lost), len(receivers[by].missing)),
        reverse=True,
    )
    others = (by for by in by_time if not receivers[by].missing)
    listed = islice(chain(lacking, others), MOST_PARTICIPANTS)
    rows = [
        ParticipantFigures(
            participants.name(by),
            participants.last_ms(by),
            len(receivers[by].missing),
            # The entries of `missing` are in order of time, so the first is the oldest.
            next(iter(receivers[by].missing.values()), None),
            len(receivers[by].lost),
            receivers[by].delivered,
            receivers[by].failed,
            capacity.filter_of(by),
            capacity.epoch_messages(by),
        )
        for by in listed
    ]
    unlisted = max(0, spoken - len(rows))
    if not rows and not unlisted:
        return b""
    return msgspec.msgpack.encode(ParticipantTable(rows, unlisted))
