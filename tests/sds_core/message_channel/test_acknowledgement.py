"""What makes a message of ours acknowledged (SDS, "Review ACK Status")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Acknowledged,
    BloomUnusable,
    Event,
    Evidence,
    MessageChannel,
    PossiblyAcknowledged,
    Profile,
    SyncReceived,
)
from sds_core.wire import (
    DEFAULT_PARAMETERS,
    BloomFilter,
    BloomParameters,
    Dialect,
)
from tests.support.frames import START_MS, FrameFactory, bloom
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    hand_over,
    of_type,
    participant,
    receive,
    typed,
)

FRAMES = FrameFactory(CHANNEL)
M_BITS, K = DEFAULT_PARAMETERS.m_bits, DEFAULT_PARAMETERS.k


def sender_of(
    *message_ids: str, profile: Profile = SPEC, others: int = 2
) -> MessageChannel:
    """A participant who has heard this many others, and sent these messages."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    alice = participant(profile=profile)
    for number in range(others):
        receive(alice, frames.sync(f"other-{number}"))
    for message_id in message_ids:
        alice.send(b"hi", START_MS, message_id=message_id)
    return alice


def about_acknowledgement(events: Iterable[Event]) -> list[tuple[type[Event], Event]]:
    """The events that are not simply that a frame came."""
    return typed(event for event in events if not isinstance(event, SyncReceived))


@pytest.mark.rule("sds-ack-1", "sds-state-6", "sds-event-2b")
def test_message_in_a_causal_history_is_acknowledged() -> None:
    """Those named leave the outgoing buffer, in the history's order."""
    alice = sender_of("a", "b", "c")
    events = receive(alice, FRAMES.content("reply", "bob", history=["c", "x", "a"]))
    assert typed(of_type(events, Acknowledged)) == typed(
        [
            Acknowledged("c", "bob", Evidence.CAUSAL_HISTORY),
            Acknowledged("a", "bob", Evidence.CAUSAL_HISTORY),
        ]
    )
    assert alice.unacknowledged == ("b",)
    assert alice.possibly_acknowledged == ()


def test_message_is_acknowledged_once() -> None:
    """Further histories and filters with the message give no event."""
    alice = sender_of("a")
    receive(alice, FRAMES.sync("bob", history=["a"]))
    events = receive(alice, FRAMES.sync("carol", history=["a"], holds=["a"]))
    assert about_acknowledgement(events) == []


@pytest.mark.rule("sds-ack-2", "sds-state-5", "sds-event-2c")
def test_message_in_a_filter_is_possibly_acknowledged() -> None:
    """It stays in the outgoing buffer; messages in no filter are unchanged."""
    alice = sender_of("a", "b", "c")
    events = receive(alice, FRAMES.sync("bob", holds=["c", "a"]))
    assert about_acknowledgement(events) == typed(
        [PossiblyAcknowledged("a", "bob", 1), PossiblyAcknowledged("c", "bob", 1)]
    )
    assert alice.possibly_acknowledged == ("a", "c")
    assert alice.unacknowledged == ("b",)


@pytest.mark.rule("sds-ack-2")
@pytest.mark.parametrize("kind", ["sync", "content", "waiting content"])
@pytest.mark.parametrize("is_retried", [False, True])
def test_filter_of_any_frame_marks_only_what_it_holds(
    kind: str, *, is_retried: bool
) -> None:
    """Whatever the frame's history names, and however often a message was sent."""
    alice = sender_of("a", "b", "c", "d")
    if is_retried:
        assert len(alice.sweep_outgoing(START_MS + 30_000).broadcasts) == 4
    frame = {
        "sync": FRAMES.sync("bob", history=["c"], holds=["a", "d"]),
        "content": FRAMES.content("m", "bob", history=["c"], holds=["a", "d"]),
        "waiting content": FRAMES.content(
            "m", "bob", history=["c", "x"], holds=["a", "d"]
        ),
    }[kind]
    receive(alice, frame, now_ms=START_MS + 30_000)
    assert alice.possibly_acknowledged == ("a", "d")
    assert alice.unacknowledged == ("b",)


@pytest.mark.rule("sds-ack-2")
def test_filter_marks_only_ids_with_all_their_bits() -> None:
    """One bit less than all shows nothing."""
    alice = sender_of("a")
    filter_ = bytearray(bloom(["a"]))
    for position, byte in enumerate(filter_):
        if byte:
            filter_[position] &= byte - 1
            break
    receive(alice, FRAMES.sync("bob", filter_=bytes(filter_)))
    assert alice.possibly_acknowledged == ()


@pytest.mark.rule("sds-ack-3", "sds-default-4")
def test_filters_of_two_participants_acknowledge() -> None:
    """The second one removes the message from the buffer."""
    alice = sender_of("a")
    receive(alice, FRAMES.sync("bob", holds=["a"]))
    events = receive(alice, FRAMES.sync("carol", holds=["a"]))
    assert about_acknowledgement(events) == typed(
        [
            PossiblyAcknowledged("a", "carol", 2),
            Acknowledged("a", "carol", Evidence.BLOOM_FILTER),
        ]
    )
    assert alice.unacknowledged == alice.possibly_acknowledged == ()


@pytest.mark.rule("sds-ack-3")
@pytest.mark.parametrize("threshold", [1, 2, 3, 5])
def test_no_fewer_filters_acknowledge_than_the_threshold(threshold: int) -> None:
    """While fewer others than that were heard, further filters of these count."""
    profile = replace(SPEC, possible_acks_threshold=threshold)
    alice = sender_of("a", profile=profile, others=1)
    for number in range(1, threshold):
        sync = FRAMES.sync("other-0", message_id=f"s{number}", holds=["a"])
        assert of_type(receive(alice, sync), Acknowledged) == []
        assert alice.possibly_acknowledged == ("a",)
    last = FRAMES.sync("other-0", message_id="last", holds=["a"])
    assert of_type(receive(alice, last), Acknowledged) == [
        Acknowledged("a", "other-0", Evidence.BLOOM_FILTER)
    ]
    assert alice.possibly_acknowledged == ()


def test_further_filter_without_the_message_does_not_count() -> None:
    """Nor does one that is too full."""
    alice = sender_of("a", others=1)
    ones = b"\xff" * DEFAULT_PARAMETERS.length_bytes
    receive(
        alice,
        FRAMES.sync("other-0", holds=["a"]),
        FRAMES.sync("other-0", holds=["b"]),
        FRAMES.sync("other-0", filter_=ones),
        FRAMES.sync("other-0"),
    )
    assert alice.possibly_acknowledged == ("a",)
    receive(alice, FRAMES.sync("other-0", holds=["a"]))
    assert alice.possibly_acknowledged == ()


def test_number_of_filters_survives_a_restart() -> None:
    """The third of three acknowledges, also after a restore."""
    profile = replace(SPEC, possible_acks_threshold=3)
    alice = sender_of("a", profile=profile, others=1)
    for _ in range(2):
        receive(alice, FRAMES.sync("other-0", holds=["a"]))
    alice = MessageChannel.restore(alice.snapshot(), random=Random(1), profile=profile)
    assert alice.possibly_acknowledged == ("a",)
    receive(alice, FRAMES.sync("other-0", holds=["a"]))
    assert alice.possibly_acknowledged == ()


def test_filters_of_one_participant_do_not_count_once_enough_others_were_heard() -> (
    None
):
    """Then as many participants are needed as before."""
    profile = replace(SPEC, possible_acks_threshold=3)
    alice = sender_of("a", profile=profile, others=2)
    for _ in range(2):
        receive(alice, FRAMES.sync("other-0", holds=["a"]))
    receive(alice, FRAMES.sync("other-2"))
    receive(alice, FRAMES.sync("other-0", holds=["a"]))
    assert alice.possibly_acknowledged == ("a",)


class TestCapped:
    """With `possible_acks_capped`, others that were never heard are not waited for."""

    PROFILE = replace(SPEC, possible_acks_capped=True)

    def test_with_two_participants_one_filter_acknowledges(self) -> None:
        """There is no second witness, and the filter proves it if it is not full."""
        alice, bob = participant(profile=self.PROFILE), participant("bob")
        sizes = 2 * SPEC.causal_history_size
        steps = [alice.send(b"hi", START_MS) for _ in range(sizes)]
        for step in steps:
            hand_over(step, bob)
        ids = [frame_of(step).message_id for step in steps]
        events = hand_over(bob.sync(START_MS), alice)
        acknowledged = of_type(events, Acknowledged)
        assert {one.message_id: one.evidence for one in acknowledged} == {
            **dict.fromkeys(ids, Evidence.BLOOM_FILTER),
            **dict.fromkeys(ids[-SPEC.causal_history_size :], Evidence.CAUSAL_HISTORY),
        }
        assert alice.unacknowledged == alice.possibly_acknowledged == ()

    @pytest.mark.parametrize(("others", "needed"), [(1, 1), (2, 2), (3, 3), (9, 3)])
    def test_no_more_witnesses_are_needed_than_others_were_heard(
        self, others: int, needed: int
    ) -> None:
        """Up to the threshold; all who ever send a frame are heard first."""
        profile = replace(self.PROFILE, possible_acks_threshold=3)
        alice = sender_of("a", profile=profile, others=others)
        for number in range(needed):
            assert "a" in alice.unacknowledged + alice.possibly_acknowledged
            receive(alice, FRAMES.sync(f"other-{number}", holds=["a"]))
        assert alice.unacknowledged == alice.possibly_acknowledged == ()


@pytest.mark.parametrize("capped", [False, True])
def test_witness_suffices_once_the_others_are_gone(*, capped: bool) -> None:
    """Its next filter acknowledges what its earlier one only possibly did."""
    alice = sender_of("a", profile=replace(SPEC, possible_acks_capped=capped))
    receive(alice, FRAMES.sync("other-1", holds=["a"]))
    assert alice.possibly_acknowledged == ("a",)
    gone_ms = START_MS + SPEC.participant_forgotten_after_ms + 1
    events = receive(alice, FRAMES.sync("other-1", holds=["a"]), now_ms=gone_ms)
    assert about_acknowledgement(events) == typed(
        [Acknowledged("a", "other-1", Evidence.BLOOM_FILTER)]
    )


def test_second_filter_of_a_participant_changes_nothing() -> None:
    """Any number of its filters counts as one."""
    alice = sender_of("a")
    receive(alice, FRAMES.sync("bob", holds=["a"]))
    for _ in range(3):
        events = receive(alice, FRAMES.sync("bob", holds=["a"]))
        assert about_acknowledgement(events) == []
    assert alice.possibly_acknowledged == ("a",)


@pytest.mark.parametrize(("threshold", "needed"), [(1, 1), (2, 2), (3, 3)])
def test_threshold_counts_participants(threshold: int, needed: int) -> None:
    """The last required participant acknowledges, and none before."""
    profile = replace(SPEC, possible_acks_threshold=threshold)
    alice = sender_of("a", profile=profile, others=threshold)
    for number in range(1, needed):
        receive(alice, FRAMES.sync(f"peer-{number}", holds=["a"]))
        assert alice.possibly_acknowledged == ("a",)
    events = receive(alice, FRAMES.sync("last", holds=["a"]))
    assert of_type(events, Acknowledged) == [
        Acknowledged("a", "last", Evidence.BLOOM_FILTER)
    ]


def test_without_a_threshold_only_histories_acknowledge() -> None:
    """A possible acknowledgement is reported once; names are not stored."""
    alice = sender_of("a", profile=replace(SPEC, possible_acks_threshold=None))
    events = [
        event
        for number in range(1, 6)
        for event in receive(alice, FRAMES.sync(f"peer-{number}", holds=["a"]))
    ]
    assert about_acknowledgement(events) == typed(
        [PossiblyAcknowledged("a", "peer-1", 0)]
    )
    assert alice.possibly_acknowledged == ("a",)
    receive(alice, FRAMES.sync("last", history=["a"]))
    assert alice.possibly_acknowledged == ()


@pytest.mark.rule("sds-sync-11")
def test_content_and_sync_acknowledge_alike() -> None:
    """Filter and history count in both kinds of frame."""
    for frame in (
        FRAMES.content("reply", "bob", history=["a"], holds=["b"]),
        FRAMES.sync("bob", history=["a"], holds=["b"]),
    ):
        alice = sender_of("a", "b")
        events = receive(alice, frame)
        assert Acknowledged("a", "bob", Evidence.CAUSAL_HISTORY) in events
        assert of_type(events, PossiblyAcknowledged) == [
            PossiblyAcknowledged("b", "bob", 1)
        ]


def test_history_comes_before_the_filter_of_one_frame() -> None:
    """A message in both is acknowledged once, by the history."""
    alice = sender_of("a")
    events = receive(alice, FRAMES.sync("bob", history=["a"], holds=["a"]))
    assert about_acknowledgement(events) == typed(
        [Acknowledged("a", "bob", Evidence.CAUSAL_HISTORY)]
    )


def test_own_frames_acknowledge_nothing() -> None:
    """Their history and filter name what we sent ourselves."""
    alice = sender_of("a")
    echo = alice.sync(START_MS)
    hand_over(echo, alice)
    receive(alice, FRAMES.content("x", "alice", history=["a"], holds=["a"]))
    assert alice.unacknowledged == ("a",)


@pytest.mark.rule("sds-ack-3")
def test_filter_that_is_too_full_does_not_count() -> None:
    """It acknowledges possibly, reported once, but never definitely."""
    alice = sender_of("a")
    ones = b"\xff" * DEFAULT_PARAMETERS.length_bytes
    events = [
        event
        for number in range(2, 5)
        for event in receive(
            alice, FRAMES.sync("eve", message_id=f"s{number}", filter_=ones)
        )
    ]
    assert about_acknowledgement(events) == typed(
        [
            BloomUnusable("s2", "its false-positive rate is 1.000"),
            PossiblyAcknowledged("a", "eve", 0),
            BloomUnusable("s3", "its false-positive rate is 1.000"),
            BloomUnusable("s4", "its false-positive rate is 1.000"),
        ]
    )
    assert alice.possibly_acknowledged == ("a",)


def test_only_participants_with_usable_filters_count() -> None:
    """A too full filter adds no participant."""
    profile = replace(SPEC, possible_acks_threshold=3)
    alice = sender_of("a", profile=profile, others=3)
    ones = b"\xff" * DEFAULT_PARAMETERS.length_bytes
    events = receive(
        alice,
        FRAMES.sync("eve", filter_=ones),
        FRAMES.sync("bob", holds=["a"]),
        FRAMES.sync("mallory", filter_=ones),
        FRAMES.sync("carol", holds=["a"]),
    )
    assert of_type(events, PossiblyAcknowledged) == [
        PossiblyAcknowledged("a", "eve", 0),
        PossiblyAcknowledged("a", "bob", 1),
        PossiblyAcknowledged("a", "carol", 2),
    ]
    assert of_type(events, Acknowledged) == []


def test_too_full_filter_is_reported_once_per_frame() -> None:
    """Not once for each message in it."""
    alice = sender_of("a", "b", "c")
    ones = b"\xff" * DEFAULT_PARAMETERS.length_bytes
    events = receive(alice, FRAMES.sync("eve", filter_=ones))
    assert len(of_type(events, BloomUnusable)) == 1
    assert len(of_type(events, PossiblyAcknowledged)) == 3


def test_participant_with_a_full_filter_counts_once_it_has_a_usable_one() -> None:
    """Its earlier full filter does not matter."""
    alice = sender_of("a")
    ones = b"\xff" * DEFAULT_PARAMETERS.length_bytes
    receive(alice, FRAMES.sync("bob", holds=["a"]))
    receive(alice, FRAMES.sync("eve", filter_=ones))
    events = receive(alice, FRAMES.sync("eve", holds=["a"]))
    assert about_acknowledgement(events) == typed(
        [
            PossiblyAcknowledged("a", "eve", 2),
            Acknowledged("a", "eve", Evidence.BLOOM_FILTER),
        ]
    )


@pytest.mark.parametrize(("extra", "counts"), [(0, True), (1, False)])
def test_filter_counts_up_to_the_limit_of_its_false_positive_rate(
    extra: int, counts: bool
) -> None:
    """At the limit it counts, and with one more bit it does not."""
    limit_bits = M_BITS // 2
    profile = replace(
        SPEC,
        possible_acks_threshold=1,
        possible_acks_max_false_positive_rate=(limit_bits / M_BITS) ** K,
    )
    alice = sender_of("a", profile=profile)
    filter_ = bloom(["a"], bits_set=limit_bits + extra)
    events = receive(alice, FRAMES.sync("bob", filter_=filter_))
    assert bool(of_type(events, Acknowledged)) is counts
    assert bool(of_type(events, BloomUnusable)) is not counts


@pytest.mark.parametrize(
    ("profile", "most"),
    [(SPEC, 10_000), (Profile.js_sds(), 20_000)],
    ids=["spec", "js"],
)
def test_filter_of_default_size_counts_while_it_is_not_too_full(
    profile: Profile, most: int
) -> None:
    """To its capacity; in js-waku, which never rolls over, to twice its capacity."""
    for ids, counts in ((most, True), (most * 5 // 4, False)):
        alice = sender_of("a", profile=replace(profile, possible_acks_threshold=1))
        # As many bits as so many ids set on average.
        bits = round(M_BITS * (1 - (1 - 1 / M_BITS) ** (K * ids)))
        receive(alice, FRAMES.sync("bob", filter_=bloom(["a"], bits_set=bits)))
        assert (alice.possibly_acknowledged == ()) is counts


@pytest.mark.rule("sds-event-4")
def test_filter_of_the_wrong_size_leaves_the_rest_of_the_frame() -> None:
    """Its history still acknowledges."""
    alice = sender_of("a", "b")
    frame = FRAMES.sync("bob", message_id="s", history=["a"], filter_=b"\xff" * 9)
    assert about_acknowledgement(receive(alice, frame)) == typed(
        [
            Acknowledged("a", "bob", Evidence.CAUSAL_HISTORY),
            BloomUnusable("s", "a bloom filter has 9 bytes instead of 18752"),
        ]
    )
    assert alice.unacknowledged == ("b",)


def test_frame_without_a_filter_is_no_fault() -> None:
    """Nor is an unusable filter while no message waits for one."""
    alice = sender_of("a")
    assert about_acknowledgement(receive(alice, FRAMES.sync("bob"))) == []
    idle = participant("idle")
    frame = FRAMES.sync("bob", filter_=b"\xff" * 9)
    assert about_acknowledgement(receive(idle, frame)) == []


def test_filters_of_another_size_are_read_by_their_header() -> None:
    """As in nim-sds, where filters grow at a roll-over."""
    frames = FrameFactory(CHANNEL, Dialect.NIM)
    profile = replace(Profile.nim_sds(), possible_acks_threshold=9)
    alice = sender_of("a", "b", profile=profile, others=9)
    for number, capacity in enumerate((10_000, 12_000, 100, 10_000), 1):
        filter_ = BloomFilter(Dialect.NIM, BloomParameters(capacity, 0.001))
        filter_.add("a")
        frame = frames.sync(f"peer-{number}", filter_=filter_.to_wire())
        assert about_acknowledgement(receive(alice, frame)) == typed(
            [PossiblyAcknowledged("a", f"peer-{number}", number)]
        )


def test_acknowledged_message_that_comes_back_changes_nothing() -> None:
    """As when another participant answers a repair request for it."""
    alice = participant()
    step = alice.send(b"hi", START_MS, message_id="a")
    receive(alice, FRAMES.sync("bob", history=["a"]))
    before = alice.snapshot()
    hand_over(step, alice)
    assert alice.snapshot() == before
