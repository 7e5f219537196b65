"""What failures have in common, as the model counts it (docs/figures.md, 12)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sds_core.observer.sds.suspects import (
    Abandoned,
    FullFilters,
    Origin,
    Recipient,
    Suspects,
    Unrequested,
)
from tests.support.channel import Channel

MISSED_MS = 60_000
LATER_MS = 500_001


def suspects(channel: Channel) -> Suspects:
    """Suspects of a channel with a bad verdict."""
    found = channel.totals.suspects
    assert found is not None
    return found


def failing(
    channel: Channel,
    senders: Sequence[str],
    lacked: dict[str, Sequence[int]],
    later: str = "",
) -> None:
    """Messages that participants lack for longer than the deadline, over a minute.

    Args:
        channel: After its warm-up.
        senders: Sender of each message, `m0`, `m1` and so on.
        lacked: Which messages each participant lacks; it has the others.
        later: Sender of a last message, `later`, which everybody has; none if empty.
    """
    for who in lacked:
        channel.sync(who, at=59_000, lamport=500)
    step_ms = 60_000 // max(1, len(senders) - 1)
    for place, sender in enumerate(senders):
        channel.content(
            f"m{place}", sender, at=MISSED_MS + step_ms * place, lamport=1_000 + place
        )
    held = {
        who: [f"m{place}" for place in range(len(senders)) if place not in lacks]
        for who, lacks in lacked.items()
    }
    if later:
        channel.content("later", later, at=LATER_MS - 315_000, lamport=1_500)
        held = {who: [*some, "later"] for who, some in held.items()}
    for number, at in enumerate((200_000, 350_000, LATER_MS)):
        for who, some in held.items():
            channel.sync(who, at=at, lamport=2_000 + number, holds=some)


def test_messages_of_one_sender_are_its_own(channel: Channel) -> None:
    """Of two senders, one reached bob, and the other did not."""
    senders = ["alice", "carol", "alice", "carol", "alice"]
    failing(channel, senders, {"bob": [0, 4], "zoe": [0]})
    assert suspects(channel).origin == Origin("alice", failed=2, sent=3, arrived=2)


def test_messages_of_two_senders_have_no_sender_in_common(channel: Channel) -> None:
    """One of carol failed too."""
    failing(channel, ["alice", "carol", "carol"], {"bob": [0, 1], "zoe": []})
    assert suspects(channel).origin is None


def test_sender_is_unknown_while_others_messages_are_missing(channel: Channel) -> None:
    """Zoe lacks one of carol, and it is too early to call it lost."""
    failing(channel, ["alice", "carol", "alice"], {"bob": [0, 2], "zoe": []})
    assert suspects(channel).origin is not None
    channel.sync("kim", at=LATER_MS + 2_000, lamport=3_000)
    assert suspects(channel).origin is not None

    other = Channel.after_warm_up()
    other.sync("zoe", at=59_000, lamport=500)
    failing(other, ["alice", "carol", "alice"], {"bob": [0, 2]})
    other.sync("zoe", at=LATER_MS + 2_000, lamport=3_000, holds=["m0", "m2"])
    assert other.verdict == ("failing", "undelivered")
    assert suspects(other).origin is None


def test_lost_messages_were_sent_since_their_sender_was_seen(channel: Channel) -> None:
    """What others sent since then arrived."""
    channel.sync("bob", at=59_000, lamport=500)
    channel.content("first", "sue", at=60_000, lamport=1_000)
    for place in range(4):
        name = f"c{place}"
        channel.content(name, "carol", at=61_000 + place, lamport=1_001 + place)
    held = ["first", "c0", "c1", "c2", "c3"]
    channel.sync("bob", at=70_000, lamport=1_100, holds=held)
    history = ["first", "c1", ("x", "sue"), ("y", "sue")]
    channel.content("last", "sue", at=120_000, lamport=1_200, history=history)
    channel.clock(120_000 + 300_001)
    assert channel.verdict == ("failing", "lost")
    # Sue sent the first and the last, and between them two that are lost.
    assert suspects(channel).origin == Origin("sue", failed=2, sent=4, arrived=4)


def test_messages_that_one_lacks_reached_others(channel: Channel) -> None:
    """Carol and zoe have both messages; their sender does not count."""
    failing(channel, ["alice", "alice"], {"bob": [0, 1], "carol": [], "zoe": []})
    assert suspects(channel).recipient == Recipient("bob", failed=2, arrived=4)


def test_messages_that_two_lack_have_no_recipient_in_common(channel: Channel) -> None:
    """Each of them lacks one."""
    failing(channel, ["alice", "alice"], {"bob": [0], "zoe": [1]})
    assert suspects(channel).recipient is None


def test_recipient_is_unknown_while_another_may_lose_the_message(
    channel: Channel,
) -> None:
    """Zoe has been silent since; then she lacks one, and it is not overdue for her."""
    channel.sync("zoe", at=59_000, lamport=500)
    failing(channel, ["alice", "alice"], {"bob": [0, 1]})
    assert suspects(channel).recipient is None
    channel.sync("zoe", at=LATER_MS + 2_000, lamport=3_000, holds=["m0"])
    assert suspects(channel).recipient is None
    channel.sync("zoe", at=LATER_MS + 4_000, lamport=3_001, holds=["m0", "m1"])
    assert suspects(channel).recipient == Recipient("bob", failed=2, arrived=2)


def test_failures_within_a_minute_are_one_event(channel: Channel) -> None:
    """A short absence of bob is no cause."""
    channel.sync("bob", at=59_000, lamport=500)
    for place in range(4):
        at = MISSED_MS + 19_999 * place
        channel.content(f"m{place}", "alice", at=at, lamport=1_000 + place)
    for number, at in enumerate((200_000, 350_000, LATER_MS)):
        channel.sync("bob", at=at, lamport=2_000 + number, holds=())
    assert channel.verdict == ("failing", "undelivered")
    found = suspects(channel)
    assert (found.origin, found.recipient) == (None, None)


def test_requests_that_were_due_and_did_not_come_are_counted(channel: Channel) -> None:
    """Bob received a later message of alice, so he knew that some are missing."""
    failing(channel, ["alice", "alice"], {"bob": [0, 1], "zoe": [1]}, later="alice")
    assert suspects(channel).unrequested == Unrequested(3, messages=2, participants=2)


def test_no_request_is_due_for_what_nobody_can_know_of(channel: Channel) -> None:
    """The later message is of another sender, who may lack them too."""
    failing(channel, ["alice", "alice"], {"bob": [0, 1]}, later="carol")
    assert suspects(channel).unrequested is None


def test_one_request_shows_that_repair_is_on(channel: Channel) -> None:
    """Whoever sent it, for whatever id."""
    channel.sync("kim", at=58_000, lamport=400, requests=["other"])
    failing(channel, ["alice", "alice"], {"bob": [0, 1]}, later="alice")
    assert suspects(channel).unrequested is None


def retried(channel: Channel, until_ms: int, retries: int = 2) -> None:
    """A message that nobody shows to have, and that alice sends again every 30 s."""
    channel.sync("bob", at=59_000, lamport=500)
    for number in range(retries + 1):
        frame = channel.frames.content("m", "alice", 1_000)
        channel.take(frame, at=60_000 + 30_000 * number, waku_hash=f"hash {number}")
    channel.sync("bob", at=125_000, lamport=1_001, holds=())
    channel.sync("alice", at=until_ms, lamport=1_002, holds=["m"])


def test_message_that_is_not_repeated_any_more_is_abandoned(channel: Channel) -> None:
    """Two minutes after its latest retry."""
    retried(channel, until_ms=120_000 + 120_001)
    assert channel.totals.rebroadcasts_retry == 2
    assert suspects(channel).abandoned == Abandoned(1, ["alice"], 2, 2)


@pytest.mark.parametrize(("until_ms", "retries"), [(240_000, 2), (300_000, 0)])
def test_message_that_may_be_repeated_is_not_abandoned(
    channel: Channel, until_ms: int, retries: int
) -> None:
    """Too early to tell, or its sender never retries."""
    retried(channel, until_ms, retries)
    assert channel.verdict == ("failing", "unacknowledged")
    assert suspects(channel).abandoned is None


@pytest.mark.parametrize(("at_ms", "is_abandoned"), [(780_000, True), (780_001, False)])
def test_message_is_abandoned_while_its_deadline_is_in_the_window(
    channel: Channel, at_ms: int, is_abandoned: bool
) -> None:
    """Later, the verdict is bad for another reason."""
    retried(channel, until_ms=600_000)
    channel.sync("bob", at=601_000, lamport=1_003, requests=["x"])
    channel.clock(at_ms)
    assert channel.verdict[0] in ("failing", "degraded")
    assert (suspects(channel).abandoned is not None) is is_abandoned


def test_message_of_a_silent_sender_is_not_abandoned(channel: Channel) -> None:
    """The sender may be off."""
    retried(channel, until_ms=130_000)
    channel.clock(300_000)
    assert channel.verdict == ("failing", "unacknowledged")
    assert suspects(channel).abandoned is None


def test_channel_that_is_well_has_no_suspects(channel: Channel) -> None:
    """They are looked for only while the verdict is bad."""
    channel.content("m", "alice", at=61_000)
    channel.sync("bob", at=62_000, lamport=1_001, holds=["m"])
    assert channel.verdict == ("ok", "ok")
    assert channel.totals.suspects is None


def test_full_filters_of_all_participants_that_were_heard_are_counted(
    channel: Channel,
) -> None:
    """Also of more participants than the page of the channel lists."""
    full, usual = bytes([0xFE]) * 18_752, bytes([0x01]) * 18_752
    channel.sync("silent", at=60_001, lamport=999, filter_=full)
    for place in range(150):
        filter_ = full if place >= 90 else usual
        channel.sync(
            f"p{place}", at=300_000 + place, lamport=1_000 + place, filter_=filter_
        )
    channel.sync("", at=660_001, lamport=2_000, filter_=full)
    assert channel.verdict == ("degraded", "bloom_saturated")
    assert suspects(channel).filters == FullFilters(61, 151, 150_000, 10)
    channel.clock(660_002)
    assert suspects(channel).filters == FullFilters(60, 150, 150_000, 10)
