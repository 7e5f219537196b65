"""Participants of a channel: in words for its page, and as objects for the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from connectors.web import words
from connectors.web.naming import short_key
from sds_core.observer.sds.participant_figures import (
    ParticipantFigures,
    ParticipantTable,
    unpack_participants,
)
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ParticipantRow:
    """One participant in words.

    Attributes:
        key: Identifies the participant within the page.
        id: Participant id, unchanged.
        name: Participant id in one line.
        troubled: Whether messages were not delivered to it.
        heard: Event time of its latest message, and how long before the clock it is.
        lacks: Number of messages that it lacks.
        since: Since when it lacks one of them.
        undelivered: Number of these that count as not delivered.
        delivered: Share of the deliveries to it that succeeded.
        filter: Fill of its newest bloom filter.
        epoch: Number of messages that it sent in the current rate-limit epoch.
    """

    key: str
    id: str
    name: str
    troubled: bool
    heard: str
    lacks: str
    since: str
    undelivered: str
    delivered: str
    filter: str
    epoch: str


def table_of(totals: ChannelTotals) -> ParticipantTable:
    """Return the figures of the participants of a channel."""
    return unpack_participants(totals.participant_table)


def participant_rows(
    snapshot: Snapshot, table: ParticipantTable
) -> list[ParticipantRow]:
    """Describe participants in words, those that lack most first."""
    return [_row(snapshot, one) for one in table.participants]


def participant_object(one: ParticipantFigures) -> dict[str, Any]:
    """Return a participant as a JSON object, for the API."""
    ended = one.delivered + one.failed
    return {
        "id": one.name,
        "heard": one.heard_ms,
        "lacks": one.lacks,
        "lacks_since": one.lacks_since_ms,
        "undelivered": one.undelivered,
        "delivered": one.delivered,
        "failed": one.failed,
        "delivered_ratio": one.delivered / ended if ended else None,
        "filter": None
        if one.filter is None
        else {
            "bits": one.filter.m_bits,
            "bits_set": one.filter.bits_set,
            "hashes": one.filter.k,
            "false_positive_ratio": one.filter.false_positive_ratio,
            "one_percent": one.filter.one_percent_ms,
        },
        "epoch_messages": one.epoch_messages,
    }


def _row(snapshot: Snapshot, one: ParticipantFigures) -> ParticipantRow:
    silent_ms = snapshot.clock_ms - one.heard_ms
    return ParticipantRow(
        short_key(one.name),
        one.name,
        name=words.short(one.name),
        troubled=one.undelivered > 0,
        heard=f"{words.age(silent_ms)} ago",
        lacks=words.number(one.lacks),
        since=words.NOTHING
        if one.lacks_since_ms is None
        else words.moment(one.lacks_since_ms, snapshot.clock_ms),
        undelivered=words.number(one.undelivered),
        delivered=words.share(one.delivered, one.delivered + one.failed, decimals=1),
        filter=words.NOTHING
        if one.filter is None
        else f"{words.small_ratio(one.filter.false_positive_ratio)} false positives",
        epoch=words.number(one.epoch_messages),
    )
