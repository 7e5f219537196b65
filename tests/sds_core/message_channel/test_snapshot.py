"""A participant that is stored and restored."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from sds_core.message_channel import (
    Acknowledged,
    AfterRequest,
    Delivered,
    Event,
    Evidence,
    IrretrievablyLost,
    LamportRule,
    LogOrder,
    MessageChannel,
    Missing,
    ParticipantError,
    Profile,
    RepairAnswered,
    RepairExpired,
    RepairHash,
    RepairRequested,
    SnapshotError,
    Step,
)
from sds_core.message_channel.snapshot import SEAL, VERSION, State
from sds_core.wire import BloomParameters, Dialect, HistoryEntry, decode
from tests.support.frames import MINUTE, START_MS, FrameFactory, value_of
from tests.support.golden.snapshots import NOW_MS, PROFILE, busy_participant
from tests.support.participants import (
    CHANNEL,
    LASTING,
    SPEC,
    hand_over,
    of_type,
    participant,
    receive,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "snapshots"

Call = tuple[int, Callable[[MessageChannel, int], Step]]
"""Time since the start, ms, and what is called then; it gets this time as Unix ms."""

SMALL = {"bloom": BloomParameters(40, 0.01), "bloom_kept_ids": 3}
PROFILES = {
    "spec": replace(
        SPEC,
        **SMALL,
        bloom_rollover_ids=4,
        log_limit=5,
        lost_after_ms=50_000,
        outgoing_limit=3,
        max_retries=1,
        t_min_ms=10,
        t_max_ms=20_000,
    ),
    "js": replace(Profile.js_sds(), **SMALL, lost_after_ms=50_000),
    "nim": replace(
        Profile.nim_sds(),
        **SMALL,
        bloom_rollover_ids=4,
        bloom_rolled=BloomParameters(50, 0.01),
        log_order=LogOrder.ARRIVAL,
        possible_acks_threshold=2,
    ),
}


def restored(
    channel: MessageChannel,
    random: Random,
    profile: Profile = SPEC,
    *,
    now_ms: int | None = None,
) -> MessageChannel:
    """The participant after a restart."""
    blob = channel.snapshot(now_ms)
    return MessageChannel.restore(blob, random=random, profile=profile)


def script(profile: Profile) -> list[Call]:
    """Calls that leave nothing out, in order of time."""
    frames = FrameFactory(CHANNEL, profile.dialect)
    start = START_MS // profile.lamport_unit_ms

    def send(at: int, message_id: str) -> Call:
        return at, lambda one, now_ms: one.send(b"hi", now_ms, message_id=message_id)

    def content(
        at: int, message_id: str, lamport: int, *history: tuple[str, str]
    ) -> Call:
        frame = frames.content(message_id, "bob", lamport, history=history)
        return at, lambda one, now_ms: one.receive(
            value_of(frame), now_ms, retrieval_hint=message_id.encode()
        )

    def sync(at: int, sender: str, *history: str, **more: list[str]) -> Call:
        requests = [(one, "alice") for one in more.get("requests", ())]
        frame = frames.sync(
            sender, start, history=history, holds=None, requests=requests
        )
        return at, lambda one, now_ms: one.receive(value_of(frame), now_ms)

    def advance(at: int) -> Call:
        return at, lambda one, now_ms: one.advance(now_ms)

    return [
        send(0, "a"),
        content(100, "late", start + 3, ("cause", "bob"), ("gone", "carol")),
        content(150, "later", start + 4, ("late", "bob")),
        send(200, "b"),
        sync(300, "carol", "gone", requests=["a"]),
        advance(20_000),
        content(25_000, "cause", start + 1),
        send(26_000, "c"),
        advance(31_000),
        sync(40_000, "dave", "a", requests=["a", "b", "cause"]),
        content(45_000, "x", start + 10**9, ("cycle", "bob")),
        content(45_100, "cycle", start + 9, ("x", "bob")),
        advance(62_000),
        send(62_100, "d"),
        content(63_000, "gone", start + 2),
        advance(95_000),
        advance(120_000),
        send(120_100, "e"),
        advance(200_000),
        (200_001, lambda one, now_ms: one.sync(now_ms)),
        content(200_002, "y", start + 5),
        (200_003, lambda one, now_ms: one.send_ephemeral(b"bye", now_ms)),
    ]


def told_by(
    profile: Profile, restarts: Callable[[int], bool], *, ahead_ms: int = 0
) -> list[object]:
    """All that a participant says, restarted before the calls that `restarts` names.

    Before each restart, the clock is ahead by `ahead_ms`.
    """
    random = Random("the same draws")
    numbers = range(len(script(profile)))
    set_by_ms = ahead_ms * sum(map(restarts, numbers))
    start_ms = START_MS + set_by_ms
    channel = MessageChannel(
        CHANNEL, "alice", now_ms=start_ms, random=random, profile=profile
    )
    told: list[object] = []
    for number, (at, call) in enumerate(script(profile)):
        if restarts(number):
            channel = restored(
                channel, random, profile, now_ms=START_MS + set_by_ms + at
            )
            set_by_ms -= ahead_ms
        step = call(channel, START_MS + set_by_ms + at)
        told.append((list(step.broadcasts), list(step.events)))
        told.append(channel.next_deadline_ms - set_by_ms)
    return [*told, channel.snapshot(START_MS + at)]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_restart_at_any_call_changes_nothing(profile: Profile) -> None:
    """One restart before each call in turn, and one before every call."""
    expected = told_by(profile, lambda _: False)
    for restart in range(len(script(profile))):
        assert told_by(profile, restart.__eq__) == expected
    assert told_by(profile, lambda _: True) == expected


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_clock_that_was_ahead_before_a_restart_changes_no_wait(
    profile: Profile,
) -> None:
    """The stored times move back, so that no wait is longer or shorter."""
    # All Lamport timestamps and clocks of the test are within one unit.
    profile = replace(profile, lamport_unit_ms=10**9, lamport_max_ahead_ms=2 * 10**18)
    expected = told_by(profile, lambda _: False)
    # The last call sends an ephemeral message, which needs no stored time.
    last = len(script(profile)) - 1
    for restart in range(last):
        assert told_by(profile, restart.__eq__, ahead_ms=10 * MINUTE) == expected
    assert told_by(profile, last.__gt__, ahead_ms=10 * MINUTE) == expected


def test_views_are_the_same_after_a_restart() -> None:
    """All public properties and the snapshot itself."""
    busy = busy_participant()
    again = restored(busy, Random(1), PROFILE)
    for view in (
        "channel_id",
        "participant_id",
        "profile",
        "next_deadline_ms",
        "lamport",
        "log",
        "unacknowledged",
        "possibly_acknowledged",
        "waiting",
        "missing",
    ):
        assert getattr(again, view) == getattr(busy, view), view
    assert again.snapshot() == busy.snapshot()


def test_restored_participant_uses_the_given_randomness() -> None:
    """The restore itself draws no random number."""
    alice = participant()
    alice.send(b"hi", START_MS)
    first, second = Random(5), Random(5)
    assert restored(alice, first).sync(START_MS) == restored(alice, second).sync(
        START_MS
    )
    assert first.getstate() == second.getstate()
    third = Random(5)
    restored(alice, third)
    assert third.getstate() == Random(5).getstate()


@pytest.mark.rule("sds-incoming-5")
@pytest.mark.parametrize("off_ms", [0, 1, 60 * MINUTE])
def test_time_for_lost_does_not_run_while_the_participant_is_off(off_ms: int) -> None:
    """Neither for missing messages nor for those that wait for each other."""
    profile = replace(SPEC, lost_after_ms=60_000, sync_interval_ms=600 * MINUTE)
    frames = FrameFactory(CHANNEL)
    bob = participant("bob", profile)
    receive(
        bob,
        frames.content("m", "alice", 9, history=["missing"]),
        frames.content("x", "alice", 9, history=["cycle"]),
        frames.content("cycle", "alice", 9, history=["x"]),
    )
    bob.advance(START_MS + 40_000)
    again = restored(bob, Random(1), profile)
    on_ms = START_MS + 40_000 + off_ms
    assert not of_type(again.advance(on_ms).events, IrretrievablyLost)
    assert not of_type(again.advance(on_ms + 19_999).events, IrretrievablyLost)
    assert again.log == ()
    events = again.advance(on_ms + 20_000).events
    assert [one.message_id for one in of_type(events, IrretrievablyLost)] == ["missing"]
    assert set(again.log) == {"m", "x", "cycle"}


def test_restart_in_the_middle_of_a_repair_finishes_it() -> None:
    """The request is sent at once if its time passed while the participant was off."""
    alice, bob = participant(profile=LASTING), participant("bob", LASTING)
    alice.send(b"lost", START_MS, message_id="x")
    hand_over(alice.send(b"hi", START_MS, message_id="m"), bob)
    bob.advance(START_MS + SPEC.t_min_ms - 1)
    blob = bob.snapshot()
    on_ms = START_MS + (SPEC.lost_after_ms or 0) + 1
    again = MessageChannel.restore(blob, random=Random(1), profile=LASTING)
    step = again.advance(on_ms)
    assert of_type(step.events, RepairRequested)[0].message_ids == ("x",)
    assert not of_type(step.events, RepairExpired)
    hand_over(step, alice, now_ms=on_ms)
    answer = alice.sweep_repairs(on_ms + SPEC.repair_sweep_ms)
    events = hand_over(answer, again, now_ms=on_ms + SPEC.repair_sweep_ms)
    assert [one.message_id for one in of_type(events, Delivered)] == ["x", "m"]


def test_request_is_repeated_if_its_answer_went_by() -> None:
    """Others answered while the participant was off, and do not do so again."""
    bob = participant("bob")
    receive(bob, FrameFactory(CHANNEL).content("m", "alice", history=[("x", "alice")]))
    asked_ms = START_MS + SPEC.t_max_ms
    assert of_type(bob.sync(asked_ms).events, RepairRequested)
    on_ms = asked_ms + 60 * MINUTE
    step = restored(bob, Random(1)).advance(on_ms)
    assert of_type(step.events, RepairRequested)[0].message_ids == ("x",)


def test_snapshot_of_an_older_version_does_not_say_since_when_it_is_off() -> None:
    """Then the time for "lost" goes on from the absolute time."""
    bob = participant("bob", replace(SPEC, lost_after_ms=60_000))
    receive(bob, FrameFactory(CHANNEL).content("m", "alice", history=["x"]))
    state = SEAL.unpack(bob.snapshot())
    state.last_ms = None
    again = MessageChannel.restore(
        SEAL.pack(state), random=Random(1), profile=bob.profile
    )
    assert of_type(again.advance(START_MS + 60_000).events, IrretrievablyLost)


def test_time_of_a_repair_request_is_absolute() -> None:
    """A restart neither restarts nor shortens the wait."""
    late = FrameFactory(CHANNEL).content("m", "alice", history=[("x", "alice")])

    def asks(at: int, restarts: int) -> bool:
        bob = participant("bob")
        receive(bob, late)
        for _ in range(restarts):
            bob = restored(bob, Random(1))
        step = bob.send(b"hi", START_MS + at)
        return bool(of_type(step.events, RepairRequested))

    window = range(SPEC.t_min_ms - 1, SPEC.t_max_ms + 1, 1_000)
    expected = [asks(at, 0) for at in window]
    assert expected == sorted(expected)
    assert set(expected) == {False, True}
    assert [asks(at, 1) for at in window] == expected
    assert [asks(at, 3) for at in window] == expected


def test_deadlines_that_passed_meanwhile_are_due_at_once() -> None:
    """The participant does not wait again."""
    alice = participant()
    alice.send(b"hi", START_MS, message_id="a")
    again = restored(alice, Random(1))
    assert again.next_deadline_ms <= START_MS + 30_000
    (retry, *_) = again.advance(START_MS + 10**7).broadcasts
    assert retry.message_id == "a"


def test_own_message_missing_in_an_old_snapshot_is_received() -> None:
    """Others have it and name it; it is delivered once."""
    alice, bob = participant(), participant("bob")
    old = alice.snapshot()
    sent = alice.send(b"hi", START_MS, message_id="a")
    hand_over(sent, bob)
    again = MessageChannel.restore(old, random=Random(1), profile=SPEC)
    hand_over(sent, again)
    assert again.log == ()
    events = hand_over(bob.send(b"reply", START_MS, message_id="b"), again)
    assert of_type(events, Missing) == [Missing("a", b"", "alice", "b")]
    events = hand_over(sent, again) + hand_over(sent, again)
    assert [one.message_id for one in of_type(events, Delivered)] == ["a", "b"]
    assert again.log == bob.log == ("a", "b")


def test_own_message_lost_after_an_old_snapshot_is_received() -> None:
    """As every message that was reported lost; also after a repeat of the changes."""
    alice, bob = participant(), participant("bob")
    old = alice.snapshot()
    sent = alice.send(b"hi", START_MS, message_id="a")
    hand_over(sent, bob)
    again = MessageChannel.restore(old, random=Random(1), profile=SPEC)
    again.record_changes()
    hand_over(bob.send(b"reply", START_MS, message_id="b"), again)
    late_ms = START_MS + 60 * MINUTE
    assert of_type(again.advance(late_ms).events, IrretrievablyLost)
    events = hand_over(sent, again, now_ms=late_ms)
    events += hand_over(sent, again, now_ms=late_ms)
    assert [one.message_id for one in of_type(events, Delivered)] == ["a"]
    assert again.sync_status.lost == 0
    repeated = MessageChannel.restore(
        old, changes=again.take_changes(), random=Random(1), profile=SPEC
    )
    assert repeated.snapshot() == again.snapshot()


@pytest.mark.parametrize("version", [0, 2, 255])
def test_snapshot_of_an_unknown_version_is_refused(version: int) -> None:
    """The error has both versions."""
    blob = bytes([version]) + participant().snapshot()[1:]
    detail = f"the data has version {version}, but this program reads version 1"
    with pytest.raises(SnapshotError, match=f"cannot be restored: {detail}") as caught:
        MessageChannel.restore(blob, random=Random(1))
    assert caught.value.detail == detail
    assert isinstance(caught.value, ParticipantError)


def test_empty_snapshot_is_refused() -> None:
    """It has not even a version."""
    with pytest.raises(SnapshotError, match="the data is empty"):
        MessageChannel.restore(b"", random=Random(1))


def test_snapshot_cut_off_anywhere_is_refused() -> None:
    """As after a full disk; extra bytes at its end are refused too."""
    blob = busy_participant().snapshot()
    for length in range(1, len(blob)):
        with pytest.raises(SnapshotError):
            MessageChannel.restore(blob[:length], random=Random(1), profile=PROFILE)
    with pytest.raises(SnapshotError):
        MessageChannel.restore(blob + b"\0", random=Random(1), profile=PROFILE)


@pytest.mark.parametrize("flipped", [0x01, 0x80, 0xFF])
def test_snapshot_with_one_wrong_byte_is_refused(flipped: int) -> None:
    """With the documented error, at every position."""
    blob = busy_participant().snapshot()
    for position in range(len(blob)):
        damaged = bytearray(blob)
        damaged[position] ^= flipped
        with pytest.raises(SnapshotError):
            MessageChannel.restore(bytes(damaged), random=Random(1), profile=PROFILE)


@pytest.mark.parametrize("packed", [b"", b"\xc1", b"\x90", b"\xa2\xff\xfe"])
def test_invalid_state_is_refused_despite_a_valid_checksum(
    packed: bytes,
) -> None:
    """Another program may have written it."""
    blob = bytes([VERSION]) + crc32(packed).to_bytes(4, "big") + packed
    with pytest.raises(SnapshotError):
        MessageChannel.restore(blob, random=Random(1))


def test_snapshot_with_an_invalid_waiting_message_is_refused() -> None:
    """It could never be delivered."""
    state = SEAL.unpack(busy_participant().snapshot())
    state.waiting[0].value = b"no frame"
    with pytest.raises(SnapshotError):
        MessageChannel.restore(SEAL.pack(state), random=Random(1), profile=PROFILE)


OTHER_OPTIONS = {
    "dialect": Dialect.NIM,
    "lamport_rule": LamportRule.TICK,
    "lamport_unit_ms": 1_000,
    "lamport_max_ahead_ms": 60_000,
    "bloom": BloomParameters(100, 0.001),
    "bloom_rollover_ids": None,
    "bloom_kept_ids": 8_000,
    "buffered_meets_dependencies": True,
    "sync_interval_ms": 10_000,
    "repair_hash": RepairHash.FARM,
    "t_max_ms": 300_000,
}


@pytest.mark.parametrize(("option", "other"), OTHER_OPTIONS.items())
def test_snapshot_under_another_option_is_refused(option: str, other: object) -> None:
    """With both values: its times, ids and filters would have another meaning."""
    profile = replace(SPEC, **{option: other})
    for taken, restored_by in ((SPEC, profile), (profile, SPEC)):
        detail = (
            f"the snapshot has {option} = {getattr(taken, option)}, "
            f"but the profile has {getattr(restored_by, option)}"
        )
        with pytest.raises(SnapshotError, match=re.escape(detail)) as caught:
            restored(participant(profile=taken), Random(1), restored_by)
        assert caught.value.detail == detail


@pytest.mark.parametrize("taken", [Profile(), Profile.spec()])
def test_snapshot_is_continued_with_other_repairs(taken: Profile) -> None:
    """What is asked for and stored has the same meaning: that of 0.14 continues."""
    frames = FrameFactory(CHANNEL)
    bob = participant("bob", replace(taken, causal_history_size=2))
    receive(bob, frames.content("m", "alice", history=[("x", "alice"), ("y", "alice")]))
    bob.sync(START_MS + taken.t_max_ms)
    for after_request in AfterRequest:
        profile = replace(
            bob.profile,
            after_request=after_request,
            repair_retention_ms=5,
            possible_acks_capped=True,
        )
        again = restored(bob, Random(1), profile)
        assert again.missing == bob.missing
        again.advance(START_MS + 10 * taken.t_max_ms)
        receive(again, frames.content("x", "alice"), frames.content("y", "alice"))
        assert set(again.log) == {"m", "x", "y"}


@pytest.mark.parametrize("lost_after_ms", [None, 60_000])
def test_snapshot_is_continued_with_another_time_until_loss(
    lost_after_ms: int | None,
) -> None:
    """It applies to what is missing already, and to messages in a circle."""
    frames = FrameFactory(CHANNEL)
    taken = replace(SPEC, lost_after_ms=30_000 if lost_after_ms is None else None)
    bob = participant("bob", replace(taken, repair=False))
    receive(
        bob,
        frames.content("m", "alice", 3, history=["x"]),
        frames.content("a", "alice", 1, history=["b"]),
        frames.content("b", "alice", 2, history=["a"]),
    )
    later = replace(bob.profile, lost_after_ms=lost_after_ms)
    again = restored(bob, Random(1), later)
    for now_ms in (START_MS, START_MS + 59_999):
        assert of_type(again.advance(now_ms).events, Delivered) == []
        assert again.next_deadline_ms > now_ms
    late = of_type(again.advance(START_MS + 60_000).events, Delivered)
    ids = [one.message_id for one in late]
    assert ids == ([] if lost_after_ms is None else ["m", "a", "b"])


def test_snapshot_is_continued_without_repairs_and_with_them() -> None:
    """Without them, nothing is requested or answered; then all that is missing is."""
    frames = FrameFactory(CHANNEL)
    bob = participant("bob")
    receive(bob, frames.content("m", "alice", history=[("x", "alice")]))
    stored = bob.send(b"text", START_MS).broadcasts[0].message_id
    receive(bob, frames.sync("carol", requests=[(stored, "bob")]))
    quiet = restored(bob, Random(1), replace(SPEC, repair=False))
    events = quiet.advance(START_MS + 2 * SPEC.t_max_ms).events
    assert of_type(events, RepairAnswered) == of_type(events, RepairRequested) == []
    again = restored(quiet, Random(1), SPEC)
    sent = again.send(b"text", START_MS + 4 * SPEC.t_max_ms)
    assert [one.message_ids for one in of_type(sent.events, RepairRequested)] == [
        ("x",)
    ]


def test_snapshot_is_continued_with_another_threshold() -> None:
    """Filters that were counted before count for it too."""
    frames = FrameFactory(CHANNEL)
    alice = participant(profile=replace(SPEC, possible_acks_threshold=3))
    message_id = alice.send(b"text", START_MS).broadcasts[0].message_id
    for name in ("bob", "carol", "dave"):
        receive(alice, frames.sync(name))
    receive(alice, frames.sync("bob", holds=[message_id]))
    again = restored(alice, Random(1), SPEC)
    assert again.possibly_acknowledged == (message_id,)
    events = receive(again, frames.sync("carol", holds=[message_id]))
    assert [one.message_id for one in of_type(events, Acknowledged)] == [message_id]


def test_snapshot_is_continued_with_another_causal_history_size() -> None:
    """Only later frames depend on it."""
    alice = participant()
    for text in (b"a", b"b", b"c"):
        alice.send(text, START_MS)
    for size in (0, 3):
        again = restored(alice, Random(1), replace(SPEC, causal_history_size=size))
        (sent,) = again.send(b"d", START_MS).broadcasts
        assert len(decode(sent.value).causal_history) == size


@pytest.mark.parametrize("option", ["history_limit", "answers_per_sweep", "log_limit"])
def test_snapshot_under_another_limit_is_restored(option: str) -> None:
    """As long as what it holds stays below."""
    profile = replace(SPEC, **{option: getattr(SPEC, option) + 1})
    assert restored(participant(), Random(1), profile).profile == profile
    assert restored(participant(profile=profile), Random(1), SPEC).profile == SPEC


@pytest.mark.parametrize(
    "other",
    [
        replace(SPEC, bloom=BloomParameters(100, 0.001)),
        replace(SPEC, bloom=BloomParameters(10_000, 0.01)),
        replace(Profile.nim_sds(), log_order=SPEC.log_order),
    ],
    ids=["capacity", "error rate", "dialect"],
)
def test_snapshot_without_options_is_refused_if_its_filter_differs(
    other: Profile,
) -> None:
    """Those of 0.9.0 have none: the bits would have another meaning."""
    for taken, restored_by in ((SPEC, other), (other, SPEC)):
        state = SEAL.unpack(participant(profile=taken).snapshot())
        state.options, state.profile = {}, None
        with pytest.raises(SnapshotError, match="bloom filter"):
            MessageChannel.restore(
                SEAL.pack(state), random=Random(1), profile=restored_by
            )


def test_snapshot_with_a_log_in_another_order_is_refused() -> None:
    """Log keys are timestamps in one profile, arrival numbers in another."""
    other = replace(SPEC, log_order=LogOrder.ARRIVAL)
    with pytest.raises(
        SnapshotError, match="order = lamport, but the profile has arrival"
    ):
        restored(participant(), Random(1), other)
    with pytest.raises(
        SnapshotError, match="order = arrival, but the profile has lamport"
    ):
        restored(participant(profile=other), Random(1), SPEC)


def full_participant() -> MessageChannel:
    """Two entries or more in all that has a limit."""
    alice = participant("a" * 65, LASTING)
    frames = FrameFactory(CHANNEL)
    for number in range(3):
        alice.send(b"hi", START_MS, message_id=f"own{number}")
        lost, asked = f"lost{number}", f"asked{number}"
        receive(alice, frames.sync("bob", history=[lost]))
        later_ms = START_MS + (alice.profile.lost_after_ms or 0)
        alice.sweep_incoming(later_ms)
        waits = frames.content(f"waits{number}", "bob", history=[(asked, "bob")])
        receive(alice, waits, now_ms=later_ms)
        ask = frames.sync(f"carol{number}", requests=[(f"own{number}", "alice")])
        receive(alice, ask, now_ms=later_ms)
    return alice


@pytest.mark.parametrize(
    ("option", "size"),
    [
        ("log_limit", lambda state: len(state.log_keys)),
        ("outgoing_limit", lambda state: len(state.outgoing)),
        ("incoming_limit", lambda state: len(state.waiting)),
        ("missing_limit", lambda state: max(len(state.missing), len(state.lost))),
        (
            "repair_buffer_limit",
            lambda state: max(len(state.requests), len(state.responses)),
        ),
        ("repair_retained_limit", lambda state: len(state.retained)),
        ("participants_limit", lambda state: len(state.participants)),
        ("id_limit", lambda state: len(state.participant_id)),
    ],
)
def test_snapshot_over_a_limit_is_refused(
    option: str, size: Callable[[State], int]
) -> None:
    """The error has the required limit, which is then enough."""
    alice = full_participant()
    needed = size(SEAL.unpack(alice.snapshot()))
    assert needed > 1
    detail = (
        f"the snapshot needs {option} >= {needed}, but the profile has {needed - 1}"
    )
    with pytest.raises(SnapshotError, match=detail):
        restored(alice, Random(1), replace(LASTING, **{option: needed - 1}))
    again = restored(alice, Random(1), replace(LASTING, **{option: needed}))
    # The stored options differ, but nothing else.
    expected = SEAL.unpack(alice.snapshot())
    expected.profile = again.profile
    assert again.snapshot() == SEAL.pack(expected)


@pytest.mark.parametrize(
    ("option", "fields"),
    [
        ("missing_limit", ("missing", "lost")),
        ("repair_buffer_limit", ("requests", "responses")),
    ],
)
def test_each_of_two_buffers_with_one_limit_must_fit(
    option: str, fields: tuple[str, str]
) -> None:
    """Also while the other is empty."""
    for emptied, kept in (fields, fields[::-1]):
        state = SEAL.unpack(full_participant().snapshot())
        needed = len(getattr(state, kept))
        setattr(state, emptied, type(getattr(state, emptied))())
        too_small = replace(LASTING, **{option: needed - 1})
        with pytest.raises(
            SnapshotError, match=f"the snapshot needs {option} >= {needed}"
        ):
            MessageChannel.restore(
                SEAL.pack(state), random=Random(1), profile=too_small
            )


def test_snapshot_of_a_channel_with_a_longer_name_than_allowed_is_refused() -> None:
    """With the documented error."""
    alice = participant(channel_id="c" * 65)
    with pytest.raises(SnapshotError, match="the snapshot needs id_limit >= 65"):
        restored(alice, Random(1), replace(SPEC, id_limit=64))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("v*.bin")), ids=lambda p: p.stem)
def test_snapshot_of_every_version_is_restored(path: Path) -> None:
    """It continues where it stopped."""
    alice = MessageChannel.restore(path.read_bytes(), random=Random(1), profile=PROFILE)
    assert (alice.channel_id, alice.participant_id) == (CHANNEL, "alice")
    assert alice.lamport == START_MS + 6
    assert alice.log == (
        "old2",
        "old3",
        "old4",
        "old5",
        "old6",
        "exhausted",
        "seen",
        "unacknowledged",
    )
    assert alice.unacknowledged == ("unacknowledged",)
    assert alice.possibly_acknowledged == ("exhausted", "seen")
    assert alice.waiting == ("waiting", "behind", "named")
    assert alice.missing == (
        HistoryEntry("asked", b"", "bob"),
        HistoryEntry("late"),
        HistoryEntry("new", b"", "carol"),
    )
    events: list[Event] = [*alice.advance(NOW_MS + 60_000).events]
    assert RepairAnswered("seen") in events
    assert RepairAnswered("old6") in events
    frames = FrameFactory(CHANNEL)
    frame = frames.sync("dave", START_MS, history=["exhausted", "lost"])
    events = receive(alice, frame, now_ms=NOW_MS + 60_000)
    assert Acknowledged("exhausted", "dave", Evidence.CAUSAL_HISTORY) in events
    # `lost` was given up before, and is not missing anew.
    assert len(alice.missing) == 3
    events = [*alice.advance(NOW_MS + 200_000).events]
    assert IrretrievablyLost("asked", b"", "bob") in events
    assert {one.message_id for one in of_type(events, Delivered)} == {
        "waiting",
        "behind",
        "named",
    }


def test_every_version_has_a_golden_snapshot() -> None:
    """``tests.support.golden.snapshots`` writes it before a release."""
    versions = {path.stem for path in GOLDEN.glob("v*.bin")}
    assert f"v{participant().snapshot()[0]}" in versions
