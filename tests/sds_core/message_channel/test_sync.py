"""Messages without content (SDS, "Periodic Sync Message")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from sds_core.message_channel import (
    Acknowledged,
    Broadcast,
    Cause,
    MessageChannel,
    Profile,
    Retried,
    RetriesExhausted,
    Step,
    SyncReceived,
    SyncSent,
)
from sds_core.wire import BloomFilter, Dialect, FrameKind, HistoryEntry
from tests.support.frames import MINUTE, SECOND, START_MS, FrameFactory
from tests.support.message_channel.repair_bus import Bus, without_retries
from tests.support.participants import (
    CHANNEL,
    SPEC,
    frame_of,
    hand_over,
    participant,
    receive,
    typed,
)

FRAMES = FrameFactory(CHANNEL)
INTERVAL_MS = 30_000


class Draws(Random):
    """Random numbers in [0, 1) that the test chooses, one for each draw."""

    def __init__(self, *numbers: float) -> None:
        super().__init__(1)
        self._numbers: Iterator[float] = iter(numbers)

    def random(self) -> float:
        """Return the next one."""
        return next(self._numbers)


def drawing(*numbers: float, profile: Profile = SPEC) -> MessageChannel:
    """A participant whose waits for sync messages are these shares of the longest."""
    return MessageChannel(
        CHANNEL, "alice", now_ms=START_MS, random=Draws(*numbers), profile=profile
    )


def wait_ms(channel: MessageChannel, now_ms: int = START_MS) -> int:
    """The time to the next sync message; nothing else may be due before it."""
    return channel.next_deadline_ms - now_ms


class TestMessage:
    @pytest.mark.rule("sds-sync-1", "sds-event-3a", "sds-schedule-4")
    def test_sync_message_is_sent_when_it_is_due(self) -> None:
        """By `advance` at its deadline, or when the application calls `sync`."""
        alice = participant()
        receive(alice, FRAMES.content("m", "bob"))
        assert alice.advance(alice.next_deadline_ms - 1) == Step([], [])
        now_ms = alice.next_deadline_ms
        for step in (alice.advance(now_ms), alice.sync(now_ms)):
            (broadcast,) = step.broadcasts
            sync_id = broadcast.message_id
            assert broadcast == Broadcast(Cause.SYNC, sync_id, broadcast.value)
            assert typed(step.events) == typed([SyncSent(sync_id)])

    @pytest.mark.rule("sds-sync-1")
    def test_sync_messages_never_end(self) -> None:
        """At most twice the longest wait of two intervals passes without one."""
        alice = participant()
        receive(alice, FRAMES.content("m", "bob"))
        now_ms = START_MS
        for _ in range(20):
            assert now_ms < alice.next_deadline_ms <= now_ms + 4 * INTERVAL_MS + 1
            now_ms = alice.next_deadline_ms
            (broadcast,) = alice.advance(now_ms).broadcasts
            assert broadcast.cause is Cause.SYNC

    @pytest.mark.rule(
        "sds-message-8", "sds-sync-2", "sds-sync-3", "sds-sync-4", "sds-message-6"
    )
    def test_sync_message_has_all_but_content(self) -> None:
        """A timestamp increased by one, and history and filter as any message."""
        alice = participant()
        for message_id in "abc":
            alice.send(b"hi", START_MS, message_id=message_id)
        alice.note_retrieval_hint("c", b"hint")
        frame = frame_of(alice.sync(START_MS)).detached()
        assert frame.kind is FrameKind.SYNC
        assert frame.content == b""
        assert frame.sender_id == "alice"
        assert frame.channel_id == CHANNEL
        assert frame.lamport == START_MS + 4 == alice.lamport
        assert frame.causal_history == (
            HistoryEntry("b", b"", "alice"),
            HistoryEntry("c", b"hint", "alice"),
        )
        content = frame_of(alice.send(b"hi", START_MS))
        assert content.bloom_filter == frame.bloom_filter

    @pytest.mark.rule("sds-sync-5", "sds-sync-6", "sds-sync-7", "sds-sync-8")
    def test_sync_message_leaves_no_trace_at_its_sender(self) -> None:
        """In outgoing buffer, later histories, filter and log."""
        alice = participant()
        alice.send(b"hi", START_MS, message_id="m")
        sync_id = frame_of(alice.sync(START_MS)).message_id
        assert alice.unacknowledged == alice.log == ("m",)
        frame = frame_of(alice.send(b"hi", START_MS))
        assert [one.message_id for one in frame.causal_history] == ["m"]
        filter_ = BloomFilter.from_wire(Dialect.SPEC, frame.bloom_filter)
        assert filter_.contains("m")
        assert not filter_.contains(sync_id)

    @pytest.mark.rule(
        "sds-sync-6", "sds-sync-7", "sds-sync-8", "sds-sync-12", "sds-event-3b"
    )
    def test_sync_message_leaves_no_trace_at_its_receivers(self) -> None:
        """It is reported, and its timestamp is not adopted."""
        alice, bob = participant(), participant("bob")
        hand_over(alice.send(b"hi", START_MS, message_id="m"), bob)
        lamport = bob.lamport
        sync = alice.sync(START_MS)
        sync_id = frame_of(sync).message_id
        assert typed(hand_over(sync, bob)) == typed([SyncReceived(sync_id, "alice")])
        assert bob.lamport == lamport
        assert bob.log == ("m",)
        assert bob.waiting == ()
        frame = frame_of(bob.send(b"hi", START_MS))
        assert [one.message_id for one in frame.causal_history] == ["m"]
        filter_ = BloomFilter.from_wire(Dialect.SPEC, frame.bloom_filter)
        assert not filter_.contains(sync_id)

    @pytest.mark.rule("sds-sync-9")
    def test_sync_message_with_a_known_id_is_no_duplicate(self) -> None:
        """Even with the id of a message in the log."""
        bob = participant("bob")
        receive(bob, FRAMES.content("m", "alice"))
        for message_id in ("s", "s", "m"):
            events = receive(bob, FRAMES.sync("alice", message_id=message_id))
            assert typed(events) == typed([SyncReceived(message_id, "alice")])

    def test_ids_of_sync_messages_are_random(self) -> None:
        """They do not depend on the content."""
        alice = participant()
        alice.send(b"hi", START_MS, message_id="m")
        ids = [frame_of(alice.sync(START_MS)).message_id for _ in range(3)]
        assert len(set(ids)) == 3
        assert all(one.startswith("sync-") and len(one) == 21 for one in ids)

    def test_participant_without_news_sends_no_sync_message(self) -> None:
        """Its deadline passes, and its timestamp does not change."""
        alice = drawing(0.5, 0.25)
        now_ms = alice.next_deadline_ms
        assert alice.advance(now_ms) == Step([], [])
        assert alice.lamport == START_MS
        assert wait_ms(alice, now_ms) == 75_001

    @pytest.mark.rule("sds-sync-1", "sds-r-sync-1")
    def test_participant_with_only_a_repair_request_sends_a_sync_message(self) -> None:
        """A due request is news."""
        alice = participant(profile=replace(SPEC, t_min_ms=0, t_max_ms=1))
        receive(alice, FRAMES.sync("bob", history=[("x", "bob")]))
        frame = frame_of(alice.sync(START_MS))
        assert [one.message_id for one in frame.repair_request] == ["x"]

    def test_participant_with_only_a_waiting_message_sends_a_sync_message(self) -> None:
        """Its filter shows the sender that the message arrived."""
        alice = participant(profile=replace(SPEC, repair=False))
        receive(alice, FRAMES.content("m", "bob", history=["x"]))
        frame = frame_of(alice.sync(START_MS))
        filter_ = BloomFilter.from_wire(Dialect.SPEC, frame.bloom_filter)
        assert filter_.contains("m")

    def test_request_that_is_not_due_yet_is_no_news(self) -> None:
        """The frame could not carry it."""
        alice = participant()
        receive(alice, FRAMES.sync("bob", history=[("x", "bob")]))
        assert alice.sync(START_MS) == Step((), ())

    @pytest.mark.rule("sds-sync-11")
    def test_sync_message_older_than_a_full_log_is_read(self) -> None:
        """It needs no place in the log."""
        alice = participant(profile=replace(SPEC, log_limit=2))
        for message_id in "ab":
            alice.send(b"hi", START_MS, message_id=message_id)
        receive(alice, FRAMES.sync("bob", lamport=5, history=["a"]))
        assert alice.unacknowledged == ("b",)


class TestTime:
    @pytest.mark.rule("sds-sync-10", "sds-sdk-config-1", "sds-sdk-task-1a")
    @pytest.mark.parametrize(
        ("least_share", "waits"),
        [(0.0, [1, 15_001, 29_971]), (1.0, [30_001, 45_001, 59_971])],
    )
    def test_first_wait_is_a_minimum_share_plus_a_random_part(
        self, least_share: float, waits: list[int]
    ) -> None:
        """At least 1 ms, so that timers advance."""
        profile = replace(SPEC, sync_least_share=least_share)
        drawn = [drawing(share, profile=profile) for share in (0.0, 0.5, 0.999)]
        assert [wait_ms(alice) for alice in drawn] == waits

    @pytest.mark.rule("sds-sdk-task-1a")
    def test_wait_after_an_own_sync_message_is_twice_as_long(self) -> None:
        """The channel was quiet meanwhile."""
        alice = drawing(0.9, 0.9, 0.5, 0.5)
        receive(alice, FRAMES.content("m", "bob"))
        alice.sync(START_MS)
        assert wait_ms(alice) == 90_001
        alice.sync(START_MS + 7)
        assert wait_ms(alice, START_MS + 7) == 90_001

    @pytest.mark.rule("sds-sdk-task-1b")
    def test_wait_after_received_content_is_half_as_long(self) -> None:
        """To acknowledge it sooner."""
        alice = drawing(0.9, 0.5)
        receive(alice, FRAMES.content("m", "bob"), now_ms=START_MS + 7)
        assert wait_ms(alice, START_MS + 7) == 22_501

    @pytest.mark.rule("sds-sync-10")
    def test_received_sync_message_postpones_our_own(self) -> None:
        """Ours would have the same news."""
        alice = drawing(0.1, 0.5)
        receive(alice, FRAMES.sync("bob"), now_ms=START_MS + 7)
        assert wait_ms(alice, START_MS + 7) == 45_001

    @pytest.mark.rule("sds-sync-10")
    def test_sent_content_postpones_the_sync_message(self) -> None:
        """It carries the same."""
        profile = replace(SPEC, retry_unacknowledged_ms=10**9)
        alice = drawing(0.1, 0.5, profile=profile)
        alice.send(b"hi", START_MS + 7)
        assert wait_ms(alice, START_MS + 7) == 45_001

    @pytest.mark.rule("sds-sync-1", "sds-sdk-task-1b")
    def test_received_content_does_not_put_off_a_sync_message(self) -> None:
        """It waits for an acknowledgement since the first content, not the last."""
        alice = drawing(*[0.5] * 9)
        for at in range(0, 22_501, 4_500):
            receive(alice, FRAMES.content(f"m{at}", "bob"), now_ms=START_MS + at)
            assert wait_ms(alice) == 22_501
        (sync,) = alice.advance(START_MS + 22_501).broadcasts
        assert sync.cause is Cause.SYNC

    @pytest.mark.rule("sds-sync-1")
    @pytest.mark.parametrize(
        ("by", "expected_ms"), [("bob", 22_501), ("carol", 62_501)]
    )
    def test_only_others_acknowledge_what_the_speaker_said(
        self, by: str, expected_ms: int
    ) -> None:
        """Sync messages of the speaker do not put ours off, also after a restart."""
        alice = drawing(*[0.5] * 3)
        receive(alice, FRAMES.content("m", "bob"), now_ms=START_MS)
        blob = alice.snapshot()
        alice = MessageChannel.restore(blob, random=Draws(0.5), profile=SPEC)
        at_ms = START_MS + 17_500
        receive(alice, FRAMES.sync(by), now_ms=at_ms)
        assert wait_ms(alice) == expected_ms

    @pytest.mark.rule("sds-sync-1")
    @pytest.mark.parametrize("others", [1, 2, 5])
    def test_sync_messages_of_others_put_ours_off_up_to_a_limit(
        self, others: int
    ) -> None:
        """Three intervals since our last frame for each participant of the channel."""
        alice = participant()
        alice.send(b"hi", START_MS, message_id="m")
        for number in range(others):
            receive(alice, FRAMES.sync(f"peer-{number}", history=["m"]))
        latest_ms = START_MS + 3 * INTERVAL_MS * (1 + others)
        for now_ms in range(START_MS, latest_ms, 5_000):
            assert alice.advance(now_ms).broadcasts == []
            receive(alice, FRAMES.sync("peer-0"), now_ms=now_ms)
        assert alice.next_deadline_ms == latest_ms
        assert alice.advance(latest_ms).broadcasts[0].cause is Cause.SYNC
        assert alice.next_deadline_ms > latest_ms + INTERVAL_MS

    def test_limit_counts_from_the_last_frame_of_ours_also_after_a_restart(
        self,
    ) -> None:
        """Content of ours says what a sync message would say."""
        alice = participant()
        receive(alice, FRAMES.content("m", "bob"))
        sent_ms = START_MS + 20_000
        alice.send(b"hi", sent_ms, message_id="own")
        receive(alice, FRAMES.sync("bob", history=["own"]), now_ms=sent_ms)
        alice = MessageChannel.restore(alice.snapshot(), random=Random(1), profile=SPEC)
        latest_ms = sent_ms + 3 * INTERVAL_MS * 2
        for now_ms in range(sent_ms, latest_ms, 5_000):
            assert alice.advance(now_ms).broadcasts == []
            receive(alice, FRAMES.sync("bob"), now_ms=now_ms)
        assert alice.next_deadline_ms == latest_ms

    def test_without_a_limit_traffic_puts_it_off_for_ever(self) -> None:
        """As in js-waku, if the draws are long enough."""
        profile = replace(Profile.js_sds(), sync_interval_ms=30_000)
        alice = drawing(*[0.9] * 201, profile=profile)
        for number in range(100):
            now_ms = START_MS + number * 10_000
            assert alice.advance(now_ms).broadcasts == []
            frame = FRAMES.content(f"m{number}", "bob")
            receive(alice, frame, FRAMES.sync("carol"), now_ms=now_ms)

    @pytest.mark.parametrize("kind", ["echo", "duplicate", "ephemeral", "foreign"])
    def test_frames_without_effect_postpone_nothing(self, kind: str) -> None:
        """Only frames with news for the channel count."""
        alice = drawing(0.9, 0.1)
        receive(alice, FRAMES.content("m", "bob"))
        planned_ms = alice.next_deadline_ms
        frame = {
            "echo": FRAMES.content("x", "alice"),
            "duplicate": FRAMES.content("m", "bob"),
            "ephemeral": FRAMES.ephemeral("bob"),
            "foreign": FrameFactory("elsewhere").content("x", "bob"),
        }[kind]
        receive(alice, frame, now_ms=START_MS + 500)
        assert alice.next_deadline_ms == planned_ms

    def test_sync_message_with_a_due_request_is_not_postponed(self) -> None:
        """Other traffic may only make it earlier."""
        alice = drawing(0.9, 0.5, 0.1, 0.9)
        events = [("x", "bob")]
        receive(alice, FRAMES.sync("bob", history=events))
        assert wait_ms(alice) == 45_001
        receive(alice, FRAMES.sync("bob"))
        assert wait_ms(alice) == 9_901
        receive(alice, FRAMES.sync("bob"))
        assert wait_ms(alice) == 9_901

    def test_wait_after_an_own_sync_message_is_shorter_while_requests_wait(
        self,
    ) -> None:
        """Requests that were not sent cannot be answered."""
        alice = drawing(0.9, 0.5, 0.5)
        receive(alice, FRAMES.sync("bob", history=[("x", "bob")]))
        alice.sync(START_MS)
        assert wait_ms(alice) == 27_001

    def test_interval_may_be_fixed(self) -> None:
        """As in nim-sds, where other traffic does not change it."""
        alice = drawing(profile=replace(SPEC, sync_least_share=None))
        assert wait_ms(alice) == INTERVAL_MS
        receive(alice, FRAMES.content("m", "bob"), now_ms=START_MS + 7)
        assert wait_ms(alice) == INTERVAL_MS
        alice.advance(START_MS + INTERVAL_MS + 5)
        assert wait_ms(alice) == 2 * INTERVAL_MS + 5

    def test_interval_is_an_option(self) -> None:
        """All waits are proportional to it."""
        alice = drawing(0.5, 0.5, profile=replace(SPEC, sync_interval_ms=1_000))
        assert wait_ms(alice) == 1_501
        receive(alice, FRAMES.content("m", "bob"))
        assert wait_ms(alice) == 751


class TestListener:
    """One participant speaks every ten seconds for half an hour; nothing is lost."""

    FOR_MS = 30 * MINUTE
    EVERY_MS = 10 * SECOND

    def bus(self, listeners: int, profile: Profile) -> Bus:
        """All of it."""
        names = [f"listener-{number}" for number in range(listeners)]
        bus = Bus("speaker", *names, profile=profile)
        for number in range(self.FOR_MS // self.EVERY_MS):
            bus.send("speaker", f"m{number:03}")
            bus.run(self.EVERY_MS)
        bus.run(MINUTE)
        return bus

    @pytest.mark.rule("sds-sync-1", "sds-ack-3")
    @pytest.mark.parametrize("listeners", [1, 2, 20])
    def test_speaker_learns_of_the_receipt_of_every_message(
        self, listeners: int
    ) -> None:
        """And sends few again, none of them until it gives up."""
        bus = self.bus(listeners, SPEC)
        assert bus.participants["speaker"].unacknowledged == ()
        assert len(bus.events(Acknowledged)) == self.FOR_MS // self.EVERY_MS
        assert bus.events(RetriesExhausted) == []
        assert len(bus.events(Retried)) < self.FOR_MS / self.EVERY_MS / 5

    @pytest.mark.rule("sds-sync-10")
    @pytest.mark.parametrize("listeners", [1, 2, 20])
    def test_listeners_share_the_sync_messages(self, listeners: int) -> None:
        """About two thirds of an interval pass from one to the next of them all."""
        bus = self.bus(listeners, SPEC)
        syncs = len(bus.events(SyncSent))
        assert self.FOR_MS / INTERVAL_MS <= syncs <= 2.5 * self.FOR_MS / INTERVAL_MS


class TestGroup:
    """Participants who all hear each other, after one message, for ten minutes."""

    FOR_MS = 10 * MINUTE

    def syncs(self, participants: int, profile: Profile) -> int:
        """How many sync messages all of them send together."""
        names = [f"p{number}" for number in range(participants)]
        bus = Bus(*names, profile=without_retries(profile))
        bus.send("p0", "m")
        bus.run(self.FOR_MS)
        assert bus.logs() == {("m",)}
        return sum(one.broadcast.cause is Cause.SYNC for one in bus.aired)

    @pytest.mark.rule("sds-sync-10")
    @pytest.mark.parametrize("participants", [2, 10, 40])
    def test_number_of_sync_messages_does_not_grow_with_the_group(
        self, participants: int
    ) -> None:
        """At most one per interval from all participants, after a first one."""
        most = 1 + self.FOR_MS // INTERVAL_MS
        assert most / 2 <= self.syncs(participants, SPEC) <= most

    def test_without_a_minimum_share_their_number_grows(self) -> None:
        """As in js-waku: of many random waits one is always short."""
        few, many = (self.syncs(number, Profile.js_sds()) for number in (2, 40))
        assert many > 10 * few
