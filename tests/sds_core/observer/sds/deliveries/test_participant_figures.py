"""Figures of single participants (docs/figures.md, 5)."""

from __future__ import annotations

from sds_core.observer.sds.participant_figures import (
    MOST_PARTICIPANTS,
    ParticipantFigures,
    ParticipantTable,
    unpack_participants,
)
from sds_core.observer.sds.totals import ChannelTotals
from tests.support.channel import Channel
from tests.support.frames import START_MS
from tests.support.observer.deliveries import DEADLINE, LACKED, T0, lose


def table(channel: Channel) -> ParticipantTable:
    """The figures of the channel's participants."""
    return unpack_participants(channel.totals.participant_table)


def bob(channel: Channel) -> ParticipantFigures:
    """The figures of bob."""
    (found,) = [one for one in table(channel).participants if one.name == "bob"]
    return found


def test_participant_lacks_a_message_since_a_frame_showed_it(sent: Channel) -> None:
    """At first it may still come; after the deadline it counts as not delivered."""
    sent.sync("bob", at=LACKED, lamport=1_001, holds=())
    early = bob(sent)
    assert (early.lacks, early.undelivered) == (1, 0)
    assert early.lacks_since_ms == START_MS + LACKED
    late_ms = lose(sent, lamport=1_002)
    late = bob(sent)
    assert (late.lacks, late.undelivered, late.delivered, late.failed) == (1, 1, 0, 1)
    assert late.lacks_since_ms == START_MS + LACKED
    assert late.heard_ms == START_MS + late_ms


def test_message_that_came_later_is_lacked_no_more(sent: Channel) -> None:
    """It counts as delivered, as in the figures of the channel."""
    late_ms = lose(sent)
    sent.sync("bob", at=late_ms + 1, lamport=1_010, holds=["m"])
    found = bob(sent)
    assert (found.lacks, found.lacks_since_ms, found.undelivered) == (0, None, 0)
    assert (found.delivered, found.failed) == (1, 0)


def test_deliveries_of_participants_add_up_to_those_of_the_channel(
    sent: Channel,
) -> None:
    """Delivered and failed, over all of them."""
    sent.sync("carol", at=T0 + 1, lamport=1_001, holds=["m"])
    sent.content("n", "alice", at=T0 + 5, lamport=1_002)
    sent.sync("carol", at=T0 + 6, lamport=1_003, history=["n"])
    lose(sent, lamport=1_010, holds=["n"])
    totals, rows = sent.totals, table(sent).participants
    assert sum(one.delivered for one in rows) == (
        totals.deliveries_first_pass
        + totals.deliveries_recovered
        + totals.deliveries_retracted
    )
    assert sum(one.failed for one in rows) == (
        totals.deliveries_lost - totals.deliveries_retracted
    )


def test_filter_and_messages_of_the_epoch_are_known(sent: Channel) -> None:
    """Those of the newest filter, and of the epoch of the clock."""
    sent.sync("bob", at=T0 + 1, lamport=1_001, holds=["m", "n"])
    found = bob(sent)
    assert found.filter is not None
    assert round(found.filter.ids) == 2
    assert found.epoch_messages == 2


def test_those_that_lack_most_come_first_and_the_rest_are_counted() -> None:
    """Of 103 participants 100 have figures; without any there is no table."""
    channel = Channel.after_warm_up()
    for number in range(103):
        channel.sync(f"p{number:03}", at=T0, lamport=1_000, holds=())
    channel.content("m", "alice", at=T0 + 1, lamport=1_001)
    channel.sync("p102", at=T0 + 20_000, lamport=1_002, holds=())
    found = table(channel)
    assert len(found.participants) == MOST_PARTICIPANTS
    # Alice spoke too.
    assert found.others == 104 - MOST_PARTICIPANTS
    assert found.participants[0].name == "p102"
    assert unpack_participants(ChannelTotals().participant_table) == ParticipantTable()


def test_figures_outlast_the_deadline_without_frames(sent: Channel) -> None:
    """A participant that falls silent keeps what it was last known to lack."""
    lose(sent)
    sent.clock(T0 + 3 * DEADLINE)
    assert bob(sent).undelivered == 1
