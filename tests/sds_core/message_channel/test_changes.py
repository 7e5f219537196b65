"""Change records: a participant is restored from a snapshot and what came after it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sds_core.message_channel import (
    Delivered,
    IrretrievablyLost,
    MessageChannel,
    Profile,
    SnapshotError,
    Step,
    snapshot,
)
from sds_core.message_channel.changes import SEAL, VERSION
from sds_core.message_channel.profile import AfterRequest
from sds_core.wire import Dialect
from tests.support.frames import MINUTE, SECOND, START_MS, FrameFactory, value_of
from tests.support.message_channel.lossy_network import (
    LOW,
    NAMES_OF_ROOMY,
    ROOMY,
    LossyNetwork,
    names_of,
    random_losses,
)
from tests.support.message_channel.lossy_network import (
    participant as in_network,
)
from tests.support.message_channel.recorded import Recorded
from tests.support.message_channel.repair_steps import asking, state
from tests.support.participants import (
    CHANNEL,
    SPEC,
    hand_over,
    of_type,
    participant,
    receive,
)

FRAMES = FrameFactory(CHANNEL)
HINT = b"\x01" * 32
OFF_MS = (60 * MINUTE, -60 * MINUTE)


def recorded(profile: Profile = SPEC) -> Recorded:
    """A new participant that records."""
    return Recorded(participant(profile=profile))


class TestExactness:
    @pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
    @pytest.mark.parametrize("rate", [0.2, 0.6])
    def test_state_after_any_call_is_restored(
        self, profile: Profile, rate: float
    ) -> None:
        """With losses, repairs, retries and syncs; compared after every single step."""
        self.run(profile, rate, every=1)

    @pytest.mark.parametrize("profile", LOW)
    def test_state_with_full_buffers_is_restored(self, profile: Profile) -> None:
        """Evictions are repeated as they were."""
        self.run(profile, 0.5, every=7)

    def run(self, profile: Profile, rate: float, every: int) -> None:
        """Let participants talk over a lossy network, and restore one of them."""
        stored: list[Recorded] = []
        steps = 0

        def check(name: str, _: int, __: Step) -> None:
            nonlocal steps
            steps += 1
            if name == "alice" and stored and steps % every == 0:
                stored[0].assert_whole()

        network = LossyNetwork(
            names_of(3),
            lambda name, random: in_network(profile, name, random),
            random_losses(1, rate, 150),
            each_step=check,
        )
        alice = network.participants["alice"]
        assert isinstance(alice, MessageChannel)
        stored.append(Recorded(alice))
        for number in range(12):
            network.send(names_of(3)[number % 3], b"text")
            network.run(20 * SECOND)
        network.run(6 * MINUTE)
        assert len(alice.log) > 3
        stored[0].assert_whole()


class TestRecords:
    def test_frame_is_stored_once(self) -> None:
        """A record costs its frame and little more."""
        alice = recorded().channel
        (sent,) = alice.send(b"hi", START_MS).broadcasts
        value = value_of(FRAMES.content("m", "bob"))
        alice.receive(value, START_MS)
        first, second = alice.take_changes()
        assert len(first) < len(sent.value) + 64
        assert len(second) < len(value) + 64

    def test_sent_message_is_restored_with_its_bytes(self) -> None:
        """Its retry is what was broadcast before."""
        one = recorded()
        (sent,) = one.channel.send(b"hi", START_MS).broadcasts
        (retry, *_) = one.restored().advance(START_MS + 60_000).broadcasts
        assert retry.value == sent.value

    def test_delivered_message_is_not_delivered_again(self) -> None:
        """Neither by the restore nor by its next copy."""
        one = recorded()
        value = value_of(FRAMES.content("m", "bob"))
        one.channel.receive(value, START_MS)
        again = one.restored()
        assert of_type(again.receive(value, START_MS).events, Delivered) == []
        assert again.log == ("m",)

    def test_hints_are_restored(self) -> None:
        """Of what was sent, of a second copy, and of our own echo."""
        one = recorded()
        (own,) = one.channel.send(b"hi", START_MS, message_id="own").broadcasts
        one.channel.send(b"hi", START_MS, message_id="noted")
        one.channel.note_retrieval_hint("noted", HINT)
        value = value_of(FRAMES.content("m", "bob"))
        one.channel.receive(value, START_MS)
        for copy in (value, own.value):
            one.channel.receive(copy, START_MS, retrieval_hint=HINT)
        one.assert_whole()
        assert [
            entry.retrieval_hint for entry in state(one.restored()).log_entries
        ] == [HINT] * 3

    def test_hint_of_a_waiting_message_is_restored(self) -> None:
        """It is in no log yet."""
        one = recorded()
        receive(one.channel, FRAMES.content("late", "bob", history=["x"]))
        one.channel.note_retrieval_hint("late", HINT)
        one.assert_whole()
        assert state(one.restored()).waiting[0].retrieval_hint == HINT

    def test_cancelled_answer_is_restored(self) -> None:
        """The copy that cancels it has no other effect."""
        one = recorded()
        copy = FRAMES.content("m", "bob")
        receive(one.channel, copy, asking("m", sender="bob"))
        assert state(one.restored()).responses
        receive(one.channel, copy)
        one.assert_whole()
        assert not state(one.restored()).responses

    def test_frame_of_another_channel_cancels_nothing(self) -> None:
        """There the same id is another message, also in a restore."""
        one = recorded()
        receive(one.channel, FRAMES.content("m", "bob"), asking("m", sender="bob"))
        value = value_of(FrameFactory("other").content("m", "bob"))
        one.channel.receive(value, START_MS, retrieval_hint=HINT)
        value = value_of(FrameFactory(CHANNEL, Dialect.NIM).content("m", "bob"))
        one.channel.receive(value, START_MS, retrieval_hint=HINT)
        one.assert_whole()
        assert state(one.restored()).responses

    def test_frames_without_effect_are_not_recorded(self) -> None:
        """Else a stranger could fill a disk with copies."""
        one = recorded()
        value = value_of(FRAMES.content("m", "bob"))
        one.channel.receive(value, START_MS)
        one.channel.take_changes()
        one.channel.receive(value, START_MS)
        one.channel.receive(b"no frame", START_MS)
        receive(one.channel, FRAMES.ephemeral("eve"))
        receive(one.channel, FRAMES.content("far", "eve", 1 << 63))
        one.channel.send_ephemeral(b"hi", START_MS)
        one.channel.note_retrieval_hint("unknown", HINT)
        assert one.channel.take_changes() == []

    def test_nothing_is_recorded_unasked(self) -> None:
        """Records that nobody takes would fill the memory."""
        alice = participant()
        alice.send(b"hi", START_MS)
        assert alice.take_changes() == []

    def test_records_are_taken_once(self) -> None:
        """The next call has only what came later."""
        alice = recorded().channel
        alice.send(b"hi", START_MS)
        assert [SEAL.unpack(one).number for one in alice.take_changes()] == [1]
        alice.send(b"hi", START_MS)
        assert [SEAL.unpack(one).number for one in alice.take_changes()] == [2]

    def test_restored_participant_continues_the_numbers(self) -> None:
        """So one store holds the records of all runs."""
        one = recorded()
        one.channel.send(b"hi", START_MS)
        again = one.restored()
        again.record_changes()
        hand_over(participant("bob").send(b"hi", START_MS), again)
        assert [SEAL.unpack(record).number for record in again.take_changes()] == [2]


class TestPauses:
    """Time for "lost" does not run while the participant is off.

    Nor if the clock was ahead before, so that it is set back meanwhile.
    """

    PROFILE = replace(SPEC, lost_after_ms=2 * MINUTE, t_min_ms=1, t_max_ms=MINUTE)

    def missing(self) -> Recorded:
        """A participant that has waited for a message for a minute."""
        one = recorded(self.PROFILE)
        receive(one.channel, FRAMES.content("late", "bob", history=[("x", "bob")]))
        one.channel.sync(START_MS + MINUTE)
        return one

    def again(self, one: Recorded, *, has_snapshot: bool) -> Recorded:
        """The participant after an end; with a new snapshot, as a store takes it."""
        channel = one.restored()
        channel.record_changes()
        if has_snapshot:
            return Recorded(channel)
        one.channel = channel
        return one

    def lost_at(self, channel: MessageChannel, now_ms: int) -> bool:
        """Whether the message is given up."""
        return bool(of_type(channel.advance(now_ms).events, IrretrievablyLost))

    @pytest.mark.parametrize("off_ms", OFF_MS)
    @pytest.mark.parametrize("has_snapshot", [False, True])
    def test_end_after_the_pause_keeps_the_time_left(
        self, *, has_snapshot: bool, off_ms: int
    ) -> None:
        """The first call may have no other effect; the record of it has the pause."""
        one = self.again(self.missing(), has_snapshot=has_snapshot)
        on_ms = START_MS + MINUTE + off_ms
        value = value_of(FRAMES.content("late", "bob", history=[("x", "bob")]))
        one.channel.receive(value, on_ms)
        one.assert_whole()
        one.channel.send(b"hi", on_ms + SECOND)
        one.assert_whole()
        for end_ms in (on_ms + SECOND, on_ms + SECOND + off_ms):
            again = one.restored()
            assert not self.lost_at(again, end_ms)
            assert not self.lost_at(again, end_ms + MINUTE - SECOND - 1)
            assert self.lost_at(again, end_ms + MINUTE - SECOND)

    @pytest.mark.parametrize("off_ms", OFF_MS)
    @pytest.mark.parametrize("has_snapshot", [False, True])
    def test_several_pauses_are_left_out(
        self, *, has_snapshot: bool, off_ms: int
    ) -> None:
        """Each as if it had not been."""
        one = self.missing()
        now_ms = START_MS + MINUTE
        for _ in range(3):
            now_ms += off_ms
            one = self.again(one, has_snapshot=has_snapshot)
            one.channel.send(b"hi", now_ms)
            one.assert_whole()
        one = self.again(one, has_snapshot=has_snapshot)
        now_ms += off_ms
        assert not self.lost_at(one.channel, now_ms)
        assert not self.lost_at(one.channel, now_ms + MINUTE - 1)
        assert self.lost_at(one.channel, now_ms + MINUTE)
        one.assert_whole()

    @pytest.mark.parametrize("off_ms", OFF_MS)
    def test_end_before_the_first_call_keeps_the_whole_pause(self, off_ms: int) -> None:
        """Two restarts without a call between them are one."""
        one = self.again(self.missing(), has_snapshot=True)
        one = self.again(one, has_snapshot=True)
        on_ms = START_MS + MINUTE + off_ms
        assert not self.lost_at(one.channel, on_ms)
        assert not self.lost_at(one.channel, on_ms + MINUTE - 1)
        assert self.lost_at(one.channel, on_ms + MINUTE)

    def test_changes_without_a_pause_run_the_time(self) -> None:
        """What happened after the snapshot is no time off, however late it was."""
        one = self.missing()
        one.snapshot = one.channel.snapshot()
        one.channel.send(b"hi", START_MS + 2 * MINUTE - 1)
        one.assert_whole()
        again = one.restored()
        assert not self.lost_at(again, START_MS + 2 * MINUTE - 1)
        assert self.lost_at(again, START_MS + 2 * MINUTE)

    def test_hint_is_no_sign_of_life(self) -> None:
        """It is noted without a time."""
        one = self.missing()
        one.channel.note_retrieval_hint("late", HINT)
        one.assert_whole()
        assert state(one.restored()).last_ms == START_MS + MINUTE


class TestOtherOptions:
    """Options that may change at a restart do not change what happened before it."""

    def test_waiting_messages_are_not_delivered_by_the_restore(self) -> None:
        """The application would never get their events."""
        one = recorded()
        for message_id in "abc":
            receive(one.channel, FRAMES.content(message_id, "bob", history=["x"]))
        small = replace(SPEC, incoming_limit=1)
        with pytest.raises(SnapshotError, match="needs incoming_limit >= 3"):
            one.restored(small)
        events = receive(one.channel, FRAMES.content("x", "bob"))
        assert len(of_type(events, Delivered)) == 4
        assert set(one.restored(small).log) == {"x", "a", "b", "c"}

    def test_delivered_message_is_not_delivered_again(self) -> None:
        """Also if a new limit would have refused its frame."""
        one = recorded()
        value = value_of(FRAMES.content("m" * 65, "bob"))
        one.channel.receive(value, START_MS)
        with pytest.raises(SnapshotError, match="needs id_limit >= 65"):
            one.restored(replace(SPEC, id_limit=64))
        receive(one.channel, FRAMES.sync("bob", history=["a", "b", "c"]))
        again = one.restored(replace(SPEC, history_limit=2))
        assert [entry.message_id for entry in again.missing] == ["a", "b", "c"]

    @pytest.mark.parametrize("after_request", AfterRequest)
    def test_request_that_was_sent_twice_is_restored(
        self, after_request: AfterRequest
    ) -> None:
        """A frame of ours carried it, and the buffer would no longer have it."""
        one = recorded(replace(SPEC, after_request=AfterRequest.ASK_AGAIN))
        history = [("x", "bob")]
        receive(one.channel, FRAMES.content("late", "bob", history=history))
        now_ms = START_MS
        for _ in range(2):
            now_ms += 2 * SPEC.t_max_ms
            one.channel.sweep_incoming(now_ms)
            one.channel.send(b"hi", now_ms + SPEC.t_max_ms)
        profile = replace(SPEC, after_request=after_request)
        again = one.restored(profile)
        assert again.profile == profile
        assert state(again).requests == state(one.channel).requests

    def test_snapshot_of_an_older_version_takes_the_new_options(self) -> None:
        """It does not say which options it was made under."""
        one = recorded()
        stored = snapshot.SEAL.unpack(one.snapshot)
        stored.profile = None
        one.snapshot = snapshot.SEAL.pack(stored)
        receive(one.channel, FRAMES.content("m", "bob"))
        profile = replace(SPEC, log_limit=5)
        assert one.restored(profile).profile == profile
        assert one.restored(profile).log == ("m",)


class TestStoredRecords:
    @pytest.fixture
    def one(self) -> Recorded:
        """Three messages sent after the snapshot."""
        one = recorded()
        for message_id in "abc":
            one.channel.send(b"hi", START_MS, message_id=message_id)
        one.changes = one.channel.take_changes()
        return one

    def test_records_that_a_newer_snapshot_has_are_skipped(self, one: Recorded) -> None:
        """A store may delete them after it has stored the snapshot."""
        one.snapshot = one.channel.snapshot()
        one.channel.send(b"hi", START_MS, message_id="d")
        one.assert_whole()
        assert one.restored().log == ("a", "b", "c", "d")

    def test_missing_record_is_an_error(self, one: Recorded) -> None:
        """What follows it would be applied to another state."""
        del one.changes[1]
        with pytest.raises(
            SnapshotError, match="change number 2 is missing before number 3"
        ):
            one.restored()

    def test_lost_end_gives_the_state_before(self, one: Recorded) -> None:
        """As after a power failure."""
        one.changes.pop()
        assert one.restored().log == ("a", "b")

    def test_damaged_record_is_an_error(self, one: Recorded) -> None:
        """At any position, and cut off anywhere."""
        record = one.changes[1]
        for position in range(0, len(record), 97):
            damaged = bytearray(record)
            damaged[position] ^= 0x01
            for wrong in (bytes(damaged), record[:position]):
                one.changes[1] = wrong
                with pytest.raises(SnapshotError):
                    one.restored()

    def test_record_without_a_frame_is_an_error(self, one: Recorded) -> None:
        """Another program may have written it."""
        change = SEAL.unpack(one.changes[0])
        change.value = b"no frame"
        one.changes[0] = SEAL.pack(change)
        with pytest.raises(SnapshotError):
            one.restored()

    def test_record_of_a_later_version_is_refused(self, one: Recorded) -> None:
        """The error has both versions."""
        one.changes[0] = bytes([VERSION + 1]) + one.changes[0][1:]
        detail = (
            f"the data has version {VERSION + 1}, but this program reads version "
            f"{VERSION}"
        )
        with pytest.raises(SnapshotError, match=detail):
            one.restored()
