"""What limits leave out, and that it is counted."""

from __future__ import annotations

from sds_core.observer.incidents import MOST_LACKING, IncidentKind
from sds_core.observer.sds.limits import (
    MANY_UNSEEN,
    MOST_HISTORY,
    MOST_REQUESTS,
    MOST_TAPS,
    MOST_UNSEEN,
)
from sds_core.observer.settings import ObserverSettings
from tests.support.channel import Channel
from tests.support.frames import MINUTE, SECOND

LONG = "x" * 513


def ids(count: int, prefix: str = "id") -> list[str]:
    """Some ids."""
    return [f"{prefix}{number}" for number in range(count)]


def test_only_the_end_of_a_long_history_is_read() -> None:
    """The newest entries stand last."""
    channel = Channel.after_warm_up()
    channel.content("seen", "bob", at=61 * SECOND)
    history = [*ids(20, "old"), "seen", *ids(MOST_HISTORY - 1)]
    channel.content("one", "alice", at=62 * SECOND, history=history)
    channel.clock(65 * SECOND)
    assert channel.totals.gaps_opened == MOST_HISTORY - 1
    assert channel.totals.left_out == {"history_entry": 20}


def test_frame_adds_few_ids_to_many_that_were_not_seen() -> None:
    """Ids that were named before are followed as before."""
    channel = Channel.after_warm_up()
    channel.content("seen", "bob", at=61 * SECOND)
    many = ids(MANY_UNSEEN)
    each = MOST_HISTORY - 1
    for begin in range(0, MANY_UNSEEN, each):
        history = ["seen", *many[begin : begin + each]]
        channel.content(f"m{begin}", "alice", at=62 * SECOND, history=history)
    assert channel.totals.left_out == {}
    history = ["seen", *many[-10:], *ids(50, "further")]
    channel.content("one", "alice", at=63 * SECOND, history=history)
    channel.clock(70 * SECOND)
    assert channel.totals.gaps_opened == MANY_UNSEEN + MOST_UNSEEN
    assert channel.totals.left_out == {"unseen_id": 50 - MOST_UNSEEN}
    channel.content("further0", "bob", at=71 * SECOND)
    channel.content("further49", "bob", at=71 * SECOND)
    channel.clock(72 * SECOND)
    assert channel.totals.gaps_late == 1


def test_only_the_first_of_many_requests_are_read() -> None:
    """Requests beyond the limit begin no episode."""
    channel = Channel.after_warm_up()
    channel.sync("alice", at=61 * SECOND, requests=ids(MOST_REQUESTS + 7))
    assert channel.totals.repair_requests == MOST_REQUESTS
    assert channel.totals.left_out == {"repair_request": 7}


def test_long_ids_in_a_frame_are_left_out() -> None:
    """The others of the frame are read; 512 characters are allowed."""
    channel = Channel.after_warm_up()
    channel.content("seen", "bob", at=61 * SECOND)
    channel.sync(
        "alice",
        at=61 * SECOND,
        history=["seen", "a", LONG, LONG[:512], ("b", LONG)],
        requests=["a", LONG],
    )
    channel.clock(64 * SECOND)
    assert channel.totals.gaps_opened == 2
    assert channel.totals.repair_requests == 1
    assert channel.totals.left_out == {"history_entry": 2, "repair_request": 1}


def test_only_some_taps_of_a_channel_are_told_apart() -> None:
    """Frames of others count as frames without a tap, until one has been silent."""
    channel = Channel.after_warm_up()

    def show(tap: str, at: int) -> None:
        frame = channel.frames.ephemeral("alice")
        channel.take(frame, at, observer=tap, seq=1)

    names = [f"{number:02}" for number in range(MOST_TAPS)]
    for tap in (*names, "more", "and more"):
        show(tap, 61 * SECOND)
    assert channel.totals.frames_ephemeral == MOST_TAPS + 2
    # Kafka delivers both twice: only of a tap that is told apart this can be seen.
    for tap in (names[0], "more"):
        show(tap, 62 * SECOND)
    assert channel.totals.frames_ephemeral == MOST_TAPS + 3
    assert channel.totals.observers == names
    assert channel.totals.left_out == {"tap": 3}
    show("new", 130 * MINUTE)
    assert channel.totals.observers == ["new"]
    assert channel.totals.left_out == {"tap": 3}


def test_participant_awaits_only_the_newest_messages() -> None:
    """Older ones are delivered to it or not, nobody knows."""
    channel = Channel.after_warm_up(ObserverSettings(awaited=3))
    channel.sync("bob", at=61 * SECOND, lamport=1_000)
    for number, name in enumerate(ids(5)):
        channel.content(name, "alice", at=(62 + number) * SECOND, lamport=1_001)
    channel.sync("bob", at=80 * SECOND, lamport=2_000, holds=ids(5))
    assert channel.totals.deliveries_first_pass == 3
    assert channel.totals.left_out == {"delivery": 2}


def test_only_deliveries_that_could_be_awaited_are_left_out() -> None:
    """Nobody awaits its own messages, or messages without a sender."""
    channel = Channel.after_warm_up(ObserverSettings(awaited=2))
    channel.sync("bob", at=61 * SECOND, lamport=1_000)
    for number, sender in enumerate(["bob", "", "alice", "alice", "alice"]):
        name = f"id{number}"
        channel.content(name, sender, at=(62 + number) * SECOND, lamport=1_001)
    channel.sync("bob", at=80 * SECOND, lamport=2_000, holds=ids(5))
    assert channel.totals.deliveries_first_pass == 2
    assert channel.totals.left_out == {"delivery": 1}


def test_what_a_participant_lacks_gives_way_to_newer_messages() -> None:
    """The oldest is no longer awaited."""
    channel = Channel.after_warm_up(ObserverSettings(awaited=2))
    channel.sync("bob", at=61 * SECOND, lamport=1_000)
    for number, name in enumerate(ids(2)):
        channel.content(name, "alice", at=(62 + number) * SECOND, lamport=1_001)
    channel.sync("bob", at=70 * SECOND, lamport=2_000, holds=[])
    channel.content("new", "alice", at=71 * SECOND, lamport=2_001)
    channel.sync("bob", at=80 * SECOND, lamport=3_000, holds=[*ids(2), "new"])
    assert channel.totals.deliveries_first_pass == 1
    assert channel.totals.deliveries_recovered == 1
    assert channel.totals.left_out == {"delivery": 1}


def test_all_participants_together_await_a_limited_number() -> None:
    """Those that speak first await theirs."""
    channel = Channel.after_warm_up(ObserverSettings(awaited_by_all=3))
    for name in ("bob", "carol"):
        channel.sync(name, at=61 * SECOND, lamport=1_000)
    for number, name in enumerate(ids(2)):
        channel.content(name, "alice", at=(62 + number) * SECOND, lamport=1_001)
    for name in ("bob", "carol"):
        channel.sync(name, at=70 * SECOND, lamport=2_000, holds=[])
    assert channel.totals.left_out == {"delivery": 1}
    for name in ("bob", "carol"):
        channel.sync(name, at=80 * SECOND, lamport=3_000, holds=ids(2))
    assert channel.totals.deliveries_recovered == 3


def test_filters_of_a_limited_number_of_participants_are_followed() -> None:
    """Further ones are counted at each first copy."""
    channel = Channel.after_warm_up(ObserverSettings(followed=2))
    for name in ("a", "b", "c", "d", "d"):
        channel.sync(name, at=61 * SECOND, lamport=1_000, holds=[])
    assert channel.totals.left_out == {"participant": 3}
    assert channel.totals.participants == 4


def test_filter_is_searched_for_the_newest_messages_only() -> None:
    """The older one is found by the next filter."""
    channel = Channel.after_warm_up(ObserverSettings(searched=2))
    for number, name in enumerate(ids(3)):
        channel.content(name, "alice", at=(61 + number) * SECOND, lamport=1_001)
    channel.sync("bob", at=70 * SECOND, lamport=2_000, holds=ids(3))
    assert channel.totals.acknowledged_probable == 2
    assert channel.totals.left_out == {"filter_search": 1}
    channel.sync("carol", at=71 * SECOND, lamport=2_001, holds=ids(3))
    assert channel.totals.acknowledged_probable == 3


def test_filter_is_not_searched_for_messages_without_a_sender() -> None:
    """They cannot be acknowledged, so they displace no others."""
    channel = Channel.after_warm_up(ObserverSettings(searched=2))
    for number, sender in enumerate(["alice", "", "alice", ""]):
        name = f"id{number}"
        channel.content(name, sender, at=(61 + number) * SECOND, lamport=1_001)
    channel.sync("bob", at=70 * SECOND, lamport=2_000, holds=ids(4))
    assert channel.totals.acknowledged_probable == 2
    assert channel.totals.left_out == {}


def test_own_messages_of_a_filters_sender_are_not_left_out_of_the_search() -> None:
    """The filter cannot acknowledge them; the filter of another participant can."""
    channel = Channel.after_warm_up(ObserverSettings(searched=2))
    for number, sender in enumerate(["bob", "carol", "bob", "alice", "alice"]):
        name = f"id{number}"
        channel.content(name, sender, at=(61 + number) * SECOND, lamport=1_001)
    for name, left_out in (("bob", 1), ("carol", 3), ("dave", 6)):
        channel.sync(name, at=70 * SECOND, lamport=2_000, holds=[])
        assert channel.totals.left_out == {"filter_search": left_out}


def test_responses_in_a_very_large_channel_are_not_timed() -> None:
    """All participants would have to be tried."""
    channel = Channel.after_warm_up(ObserverSettings(timed_participants=1))
    for name in ("alice", "bob"):
        channel.sync(name, at=61 * SECOND, lamport=1_000)
    channel.content("m", "alice", at=62 * SECOND, lamport=1_001)
    channel.sync("bob", at=70 * SECOND, lamport=1_002, requests=["m"])
    channel.content("m", "alice", at=75 * SECOND, lamport=1_001)
    assert channel.totals.repair_responses == 1
    assert channel.totals.responses_timed == 0
    assert channel.totals.left_out == {"response_timing": 1}


def test_incident_names_a_hundred_participants_and_counts_the_others() -> None:
    """Their number is brought up to date each time it doubles, and at the end."""
    channel = Channel.after_warm_up()
    names = ids(130, "p")
    for name in names:
        channel.sync(name, at=61 * SECOND, lamport=1_000)
    channel.content("m", "alice", at=62 * SECOND, lamport=1_001)
    for number, minute in enumerate((1, 4, 7)):
        at = 62 * SECOND + minute * MINUTE
        for name in names:
            channel.sync(name, at=at, lamport=2_000 + number, holds=[])
    incident = channel.incidents[IncidentKind.UNDELIVERED.value, "m"]
    assert channel.totals.deliveries_lost == 130
    assert list(incident.lacking) == names[:MOST_LACKING]
    assert incident.lacking_others == 128 - MOST_LACKING
    for name in names:
        channel.sync(name, at=63 * SECOND + 7 * MINUTE, lamport=3_000, holds=["m"])
    incident = channel.incidents[IncidentKind.UNDELIVERED.value, "m"]
    assert incident.ended_ms is not None
    assert (incident.lacking, incident.lacking_others) == ({}, 0)


def test_one_frame_shows_or_retracts_a_limited_number_of_losses() -> None:
    """The participant's next frame does so with the others."""
    channel = Channel.after_warm_up()
    channel.sync("bob", at=61 * SECOND, lamport=1_000)
    for name in ids(60):
        channel.content(name, "alice", at=62 * SECOND, lamport=1_001)
    for number, minute in enumerate((1, 4)):
        at = 62 * SECOND + minute * MINUTE
        channel.sync("bob", at=at, lamport=1_900 + number, holds=[])
    at = 62 * SECOND + 7 * MINUTE
    for number, lost in enumerate((25, 50, 60, 60)):
        channel.sync("bob", at=at + number, lamport=2_000 + number, holds=[])
        assert channel.totals.deliveries_lost == lost
    for number, retracted in enumerate((25, 50, 60, 60), 5):
        channel.sync("bob", at=at + number, lamport=2_000 + number, holds=ids(60))
        assert channel.totals.deliveries_retracted == retracted
