"""Bytes by part, and gauges of current activity (docs/figures.md, 9)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect, Frame, PartSizes, part_sizes
from tests.support.channel import Channel
from tests.support.frames import START_MS, bloom, value_of

AT = 60_000
LATELY = 600_000
EPOCH = 600_000
EPOCH_END = -START_MS % EPOCH
"""The first moment of the first whole epoch."""


@pytest.fixture
def channel() -> Channel:
    """A channel after its warm-up, by frames without a sender, at 60 s."""
    return Channel.after_warm_up()


def sizes(channel: Channel) -> PartSizes:
    """Number of bytes by part."""
    return PartSizes(
        *(getattr(channel.totals, f"bytes_{part}") for part in PartSizes._fields)
    )


def counted(channel: Channel, act: Callable[[], object]) -> PartSizes:
    """Bytes that an action adds."""
    before = sizes(channel)
    act()
    return PartSizes(*(b - a for a, b in zip(before, sizes(channel), strict=True)))


def of(frame: Frame) -> PartSizes:
    """Number of bytes of a frame."""
    return part_sizes(frame.dialect, value_of(frame))


NOTHING = PartSizes(0, 0, 0, 0, 0)


# Bytes.


@pytest.mark.parametrize("dialect", Dialect)
def test_every_kind_of_frame_has_its_bytes(dialect: Dialect) -> None:
    """The parts of content, sync and ephemeral frames add up to the frame."""
    channel = Channel(dialect=dialect)
    frames = [
        channel.content("m", "bob", AT, history=["a"], holds=["a"], requests=["b"]),
        channel.sync("bob", AT, history=["m", ("a", "sue")], holds=["a", "m"]),
        channel.ephemeral("zoe", AT),
    ]
    parts = [of(frame) for frame in frames]
    assert sizes(channel) == PartSizes(*map(sum, zip(*parts, strict=True)))
    assert sum(sizes(channel)) == sum(len(value_of(frame)) for frame in frames)
    assert min(sizes(channel)) > 0


def test_replicas_and_duplicates_have_no_bytes(channel: Channel) -> None:
    """The network carried them once."""
    first = channel.content("m", "bob", AT, waku_hash="1", observer="tap", seq=1)

    def again() -> None:
        channel.take(first, AT, waku_hash="1", observer="other", seq=1)
        channel.take(first, AT + 9_000, waku_hash="2", observer="tap", seq=1)

    assert counted(channel, again) == NOTHING
    assert channel.totals.replicas == 1


def test_rebroadcasts_and_collisions_have_bytes(channel: Channel) -> None:
    """Each was sent."""
    frame = channel.content("m", "bob", AT, waku_hash="1", holds=["a"])
    again = counted(channel, lambda: channel.take(frame, AT + 1, waku_hash="2"))
    assert again == of(frame)
    other = channel.frames.content("m", "carol", 7, text=b"other")
    assert counted(channel, lambda: channel.take(other, AT + 2)) == of(other)
    assert channel.totals.message_id_collisions == 1


def test_rebroadcast_of_an_old_message_has_bytes(channel: Channel) -> None:
    """Also if its first copy is beyond the horizon."""
    frame = channel.content("m", "bob", AT, waku_hash="1")
    channel.sync("bob", AT + 3_500_000, history=["m"])  # Keeps it known.
    act = counted(channel, lambda: channel.take(frame, AT + 3_600_001, waku_hash="2"))
    assert act == of(frame)
    assert channel.totals.rebroadcasts_retry == 1


def test_unreadable_filter_has_bytes(channel: Channel) -> None:
    """It was sent."""
    frame = channel.frames.sync("bob", filter_=b"\x01")
    assert counted(channel, lambda: channel.take(frame, AT)).bloom == 3


def test_responses_count_with_their_whole_frames(channel: Channel) -> None:
    """The first response and redundant ones, but no other rebroadcast."""
    frame = channel.content("m", "alice", AT, holds=["a"], waku_hash="1")
    length = len(value_of(frame))
    channel.take(frame, AT + 1, waku_hash="2")
    assert channel.totals.repair_bytes_response == 0
    channel.sync("bob", AT + 2, requests=["m"])
    channel.take(frame, AT + 3, waku_hash="3")
    assert channel.totals.repair_bytes_response == length
    channel.take(frame, AT + 4, waku_hash="4")
    assert channel.totals.repair_bytes_response == 2 * length
    channel.take(frame, AT + 5, waku_hash="4")
    assert channel.totals.repair_bytes_response == 2 * length
    channel.take(frame, AT + 2 + 135_001, waku_hash="5")
    assert channel.totals.repair_bytes_response == 2 * length


@pytest.mark.parametrize("dialect", Dialect)
def test_requested_first_copy_is_a_response(channel: Channel, dialect: Dialect) -> None:
    """The tap missed the original broadcast."""
    channel.sync("bob", AT, requests=["m"], dialect=dialect)
    frame = channel.content("m", "alice", AT + 1, dialect=dialect)
    assert channel.totals.repair_bytes_response == len(value_of(frame))


# Participants of now.


def test_participants_are_those_of_the_last_ten_minutes(channel: Channel) -> None:
    """To the millisecond; the view has a deadline for the change."""
    channel.sync("bob", AT)
    channel.ephemeral("carol", AT + 20_000)
    channel.sync("bob", AT + 10_000)
    channel.clock(AT + 10_000 + LATELY)
    assert channel.totals.participants_lately == 2
    assert channel.wake() == AT + 10_000 + LATELY
    assert channel.totals.participants_lately == 1
    channel.clock(AT + 20_000 + LATELY)
    assert channel.totals.participants_lately == 1
    assert channel.wake() == AT + 20_000 + LATELY
    assert channel.totals.participants_lately == 0
    assert channel.totals.participants == 2


def test_only_senders_of_first_copies_are_participants(channel: Channel) -> None:
    """Unknown senders, named participants and rebroadcasts do not count."""
    frame = channel.content("m", "bob", AT, waku_hash="1")
    channel.sync("", AT, history=[("x", "sue")])
    assert channel.totals.participants_lately == 1
    channel.take(frame, AT + LATELY, waku_hash="2")
    channel.clock(AT + LATELY + 1)
    assert channel.totals.participants_lately == 0


def test_late_record_is_of_its_own_time(channel: Channel) -> None:
    """Its event time counts, and it does not reduce the latest time."""
    channel.clock(AT + LATELY + 1)
    channel.sync("bob", AT)
    assert channel.totals.participants_lately == 0
    channel.sync("bob", AT + LATELY)
    channel.sync("bob", AT + 1)
    assert channel.totals.participants_lately == 1
    channel.clock(AT + 2 * LATELY)
    assert channel.totals.participants_lately == 1


# Epochs of the rate limit.


def test_epoch_counts_once_it_is_over(channel: Channel) -> None:
    """The maximum of one participant, over all kinds; without unknown senders."""
    for number in range(2):
        channel.content(f"m{number}", "alice", AT, lamport=number)
    channel.ephemeral("alice", AT)
    channel.sync("bob", AT)
    for _ in range(5):
        channel.sync("", AT)
    channel.clock(EPOCH_END - 1)
    assert channel.totals.epoch_messages_max == 0
    channel.clock(EPOCH_END)
    assert channel.totals.epoch_messages_max == 3


def test_epochs_are_those_of_unix_time(channel: Channel) -> None:
    """A frame at the boundary belongs to the epoch that begins."""
    channel.sync("alice", EPOCH_END - 1)
    channel.sync("alice", EPOCH_END)
    channel.sync("alice", EPOCH_END + 1)
    assert channel.totals.epoch_messages_max == 1
    channel.clock(EPOCH_END + EPOCH - 1)
    assert channel.totals.epoch_messages_max == 1
    channel.clock(EPOCH_END + EPOCH)
    assert channel.totals.epoch_messages_max == 2


def test_epoch_of_silence_counts_nothing(channel: Channel) -> None:
    """The last complete epoch counts, even if it was silent."""
    channel.sync("alice", AT)
    channel.clock(EPOCH_END + EPOCH - 1)
    assert channel.totals.epoch_messages_max == 1
    channel.clock(EPOCH_END + EPOCH)
    assert channel.totals.epoch_messages_max == 0


def test_epoch_that_was_skipped_counts_nothing(channel: Channel) -> None:
    """The clock may pass several epochs in one step."""
    channel.sync("alice", AT)
    channel.sync("alice", EPOCH_END + EPOCH)
    assert channel.totals.epoch_messages_max == 0


def test_copies_are_no_messages_of_an_epoch(channel: Channel) -> None:
    """Replicas and collisions do not count."""
    frame = channel.content("m", "alice", AT, waku_hash="1")
    channel.take(frame, AT + 1, waku_hash="1")
    channel.content("m", "alice", AT + 3, lamport=7)
    channel.clock(EPOCH_END)
    assert channel.totals.epoch_messages_max == 1


def test_retries_use_the_senders_budget_and_repairs_nobodys(channel: Channel) -> None:
    """Nobody knows who answers a request."""
    frame = channel.content("m", "alice", AT, waku_hash="1")
    channel.take(frame, AT + 2, waku_hash="2")
    assert channel.totals.budget_used_now == 0.02
    channel.sync("bob", AT + 3, requests=["m"])
    channel.take(frame, AT + 4, waku_hash="3")
    assert channel.totals.rebroadcasts_repair == channel.totals.rebroadcasts_retry == 1
    channel.clock(EPOCH_END)
    assert channel.totals.epoch_messages_max == 2


def test_used_budget_is_that_of_this_epoch_and_the_last_one() -> None:
    """By the one who sent most; the budget is a setting."""
    channel = Channel(ObserverSettings(epoch_messages=4))
    for at in (AT, AT + 1, AT + 2):
        channel.sync("alice", at)
    channel.sync("bob", AT + 3)
    used = channel.totals.budget_used_now, channel.totals.budget_used_last
    assert used == (0.75, 0)
    channel.sync("bob", EPOCH_END)
    used = channel.totals.budget_used_now, channel.totals.budget_used_last
    assert used == (0.25, 0.75)
    channel.clock(EPOCH_END + 2 * EPOCH)
    used = channel.totals.budget_used_now, channel.totals.budget_used_last
    assert used == (0, 0)


def test_channels_together_have_the_greatest_use_of_a_budget() -> None:
    """Shares of several channels do not add up."""
    channels = [ChannelTotals(budget_used_now=one) for one in (0.2, 0.9, 0.0)]
    assert CHANNEL_FIGURES.sum(channels).budget_used_now == 0.9


def test_broadcasts_are_spent_on_repair_retries_sync_and_new_content() -> None:
    """Four parts of one whole."""
    totals = ChannelTotals(
        frames={"content.spec": 7, "sync.nim": 2, "ephemeral.spec": 1},
        rebroadcasts_repair=3,
        rebroadcasts_retry=1,
    )
    shares = {one.key: one.of_totals(totals) for one in CHANNEL_FIGURES.shares}
    assert shares["budget_repair"] == (3, 10)
    assert shares["budget_retry"] == (1, 10)
    assert shares["budget_sync"] == (2, 10)


def test_epoch_is_that_of_the_clock(channel: Channel) -> None:
    """A late record counts when it is read."""
    channel.clock(EPOCH_END)
    channel.sync("alice", AT)
    assert channel.totals.epoch_messages_max == 0
    channel.clock(EPOCH_END + EPOCH)
    assert channel.totals.epoch_messages_max == 1


# The clock alone.


def test_gauges_of_a_view_called_only_at_its_deadlines_change_in_time() -> None:
    """Each change has a deadline; after the last change there is none."""

    def gauges(channel: Channel) -> tuple[int, int, object]:
        totals = channel.totals
        worst = totals.bloom_worst
        return totals.participants_lately, totals.epoch_messages_max, worst

    def begin() -> Channel:
        channel = Channel.after_warm_up()
        channel.sync("alice", AT, filter_=bloom(bits_set=500))
        channel.sync("bob", AT + 5_000, filter_=bloom(bits_set=700))
        channel.sync("bob", AT + 7_000)
        return channel

    woken, watched = begin(), begin()
    changes = {}
    while (deadline := woken.next_deadline_ms) is not None:
        before = gauges(woken)
        woken.wake()
        if gauges(woken) != before:
            changes[deadline + 1] = before, gauges(woken)
    for moment, (before, after) in changes.items():
        watched.clock(moment - 1)
        assert gauges(watched) == before
        watched.clock(moment)
        assert gauges(watched) == after
    # Two epochs, two participants, one filter after the other.
    assert sorted(changes) == sorted(
        {
            EPOCH_END,
            EPOCH_END + EPOCH,
            AT + LATELY + 1,
            AT + 5_000 + LATELY + 1,
            AT + 7_000 + LATELY + 1,
        }
    )
    assert gauges(woken) == (0, 0, None)
