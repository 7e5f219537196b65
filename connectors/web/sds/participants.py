"""Prepares figures of a channel's participants, for the channel's page and the API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypedDict

from msgspec import Meta
from starlette.requests import Request
from starlette.routing import BaseRoute

from connectors.web.answer_types import Clock, Id, Name
from connectors.web.lookups import read_figures
from connectors.web.naming import display_name, short_key, unresolved_href
from connectors.web.operations import ROOT_LABEL, json_operation
from connectors.web.parameters import ViewQuery, views_of
from connectors.web.sources import Sources
from sds_core.observer.lacking import Lack
from sds_core.observer.sds.participant_figures import (
    MOST_PARTICIPANTS,
    ParticipantFigures,
    ParticipantTable,
    unpack_participants,
)
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot


class FilterObject(TypedDict):
    """The newest Bloom filter of a participant.

    Attributes:
        bits: Number of bits.
        bits_set: Number of bits that are 1.
        hashes: Number of hash functions.
        one_percent: Time at which `false_positive_ratio` is expected to exceed 1 %,
            Unix ms; null if the filter does not grow.
    """

    bits: int
    bits_set: int
    hashes: int
    false_positive_ratio: float
    one_percent: int | None


class ParticipantObject(TypedDict):
    """A participant.

    Attributes:
        heard: Event time of the latest first copy that the participant sent, Unix ms.
        lacks: Number of messages that the participant lacks now.
        lacks_since: For the messages that `lacks` counts, event time of the first frame
            that showed a lack, Unix ms; null if `lacks` is 0.
        undelivered: Number of messages that the participant lacks and whose delivery
            deadline has passed.
        delivered: Number of successful deliveries to the participant.
        failed: Number of failed deliveries to the participant.
        delivered_ratio: `delivered` / (`delivered` + `failed`); null if both are 0.
        filter: Newest filter of the participant; null if no filter is known.
        epoch_messages: Number of messages that the participant sent in the current
            rate-limit epoch.
    """

    id: Id
    heard: int
    lacks: int
    lacks_since: int | None
    undelivered: int
    delivered: int
    failed: int
    delivered_ratio: float | None
    filter: FilterObject | None
    epoch_messages: int


class ParticipantsAnswer(TypedDict):
    """Participants of a channel, in descending order of `undelivered`, then `lacks`."""

    id: Id
    channel_name: Name
    clock: Clock
    participants: Annotated[list[ParticipantObject], Meta(max_length=MOST_PARTICIPANTS)]
    others: Annotated[
        int, Meta(description="Number of participants that the list omits.")
    ]


def routes(sources: Sources) -> list[BaseRoute]:
    """Return the API's route for the participants of a channel."""

    def participants(request: Request, query: ViewQuery) -> ParticipantsAnswer:
        """Return a channel's participants.

        Participants are in descending order of `undelivered`, then of `lacks`.
        """
        snapshot = read_figures(sources)
        views = views_of(request, snapshot)
        channel = query.existing(views.totals)
        table = table_of(views.totals[channel])
        return {
            "id": channel,
            "channel_name": display_name(snapshot, channel, views.kind) or None,
            "clock": snapshot.clock_ms or None,
            "participants": [_participant_object(one) for one in table.participants],
            "others": table.others,
        }

    return [json_operation("/api/v1/participants", participants, label=ROOT_LABEL)]


def table_of(totals: ChannelTotals) -> ParticipantTable:
    """Return the figures of the participants of a channel."""
    return unpack_participants(totals.participant_table)


def section_values(snapshot: Snapshot, totals: ChannelTotals) -> Mapping[str, Any]:
    """Return the values that the template `sds/participants.html` needs."""
    table = table_of(totals)
    return {
        "participants": table.participants,
        "other_participants": table.others,
        "short_key": short_key,
        "unresolved_href": unresolved_href,
        "delivery_deadline_ms": snapshot.observer.delivery_deadline_ms,
        "epoch_ms": snapshot.observer.epoch_ms,
    }


def lacks_as_of_now(
    channels: Mapping[str, ChannelTotals], lacks: Iterable[Lack]
) -> Iterator[Lack]:
    """Yield groups of missing messages, corrected by participants' current figures.

    A group may be inaccurate, because it is computed from incidents: an incident may
    omit some participants that lack its message, and the monitor may no longer track
    the message. If a participant's current figures show no undelivered message, its
    groups are dropped.
    """
    tables: dict[str, dict[str, ParticipantFigures]] = {}
    for lack in lacks:
        totals = channels.get(lack.channel)
        if lack.participant is None or totals is None:
            yield lack
            continue
        if lack.channel not in tables:
            rows = table_of(totals).participants
            tables[lack.channel] = {row.name: row for row in rows}
        figures = tables[lack.channel].get(lack.participant)
        if figures is None:
            yield lack
        elif figures.undelivered:
            since_ms = figures.lacks_since_ms or lack.since_ms
            yield lack._replace(
                messages=figures.undelivered,
                # The time in the table may be too early: it may belong to a message
                # whose deadline has not passed. If `at_least`, the time of the group
                # may be too late: incidents that omit the participant do not count.
                since_ms=since_ms if lack.at_least else max(since_ms, lack.since_ms),
                tap_hole=min(lack.tap_hole, figures.undelivered),
                at_least=False,
            )


def _participant_object(one: ParticipantFigures) -> ParticipantObject:
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
