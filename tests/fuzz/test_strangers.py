"""Participants that receive arbitrary frames of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.message_channel import (
    Acknowledged,
    Delivered,
    Event,
    Ignored,
    IgnoredReason,
    MessageChannel,
    Profile,
    SnapshotError,
    Step,
    snapshot,
)
from sds_core.wire import (
    BloomFilter,
    BloomParameters,
    Dialect,
    HistoryEntry,
    decode,
    encode,
)
from tests.support.frames import SECOND, START_MS, FrameFactory
from tests.support.message_channel.lossy_network import (
    HOUR,
    LOW,
    NAMES_OF_ROOMY,
    ROOMY,
    SMALL_FILTER,
    LossyNetwork,
    participant,
)
from tests.support.participants import CHANNEL
from tests.support.properties import CAREFUL

pytestmark = pytest.mark.slow

PARTICIPANTS = ("alice", "bob")
"""Who is sent what strangers send. Nobody forges their names: frames come authenticated
(SDS-R guide, "Security Assumptions").
"""

LOW_PROFILES = st.sampled_from(LOW)

# What the protocol's numbers turn at.
LAMPORTS = st.sampled_from(
    [
        0,
        1,
        START_MS,
        START_MS + 10 * 365 * 24 * HOUR,
        2**62,
        2**62 + 1,
        2**63,
        2**64 - 1,
    ]
) | st.integers(0, 2**64 - 1)

IDS = st.sampled_from(
    ["", "alice", "bob", "mallory", "0", "1", "2", "i" * 65, "\N{SNOWMAN}" * 64]
)
ENTRIES = st.lists(
    st.builds(HistoryEntry, IDS, st.sampled_from([b"", b"hint", b"h" * 17]), IDS),
    max_size=9,
)
FILTERS = st.one_of(
    st.just(b""),
    st.binary(max_size=40),
    st.sampled_from([127, 128, 129]).map(lambda length: b"\xff" * length),
    st.sampled_from(Dialect).map(lambda dialect: full_filter(dialect)),
)


def full_filter(dialect: Dialect, parameters: BloomParameters = SMALL_FILTER) -> bytes:
    """A filter that seems to hold every id."""
    made = BloomFilter(dialect, parameters)
    made.bits = bytearray(b"\xff" * len(made.bits))
    return made.to_wire()


def genuine_frames(profile: Profile) -> list[bytes]:
    """Frames of every kind that another participant sends, with all fields in use."""
    carol = participant(profile, "carol", Random(2))
    dave = participant(profile, "dave", Random(3))
    values = [
        dave.send(b"text", START_MS + at_ms).broadcasts[0].value for at_ms in (1, 2)
    ]
    carol.receive(values[1], START_MS)
    later_ms = START_MS + profile.t_max_ms
    steps = [
        carol.send_ephemeral(b"text", START_MS),
        carol.sync(later_ms),
        carol.send(b"text", later_ms),
    ]
    values += [one.value for step in steps for one in step.broadcasts]
    return values


GENUINE = {profile: genuine_frames(profile) for profile in LOW}


@st.composite
def altered_frames(draw: st.DrawFn, genuine: Sequence[bytes]) -> bytes:
    """A genuine frame with one or more fields exchanged, or bits turned, or cut."""
    value = draw(st.sampled_from(genuine))
    how = draw(st.sampled_from(["fields", "bits", "cut", "joined"]))
    if how == "cut":
        return value[: draw(st.integers(0, len(value)))]
    if how == "joined":
        return value + draw(st.sampled_from(genuine))
    if how == "bits":
        damaged = bytearray(value)
        for bit in draw(st.lists(st.integers(0, len(value) * 8 - 1), max_size=8)):
            damaged[bit >> 3] ^= 1 << (bit & 7)
        return bytes(damaged)
    frame = decode(value).detached()
    changes = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "dialect": st.sampled_from(Dialect),
                "message_id": IDS,
                "sender_id": IDS.filter(lambda name: name not in PARTICIPANTS),
                "channel_id": st.sampled_from([CHANNEL, "other", "c" * 5_000]),
                "lamport": st.none() | LAMPORTS,
                "causal_history": ENTRIES,
                "bloom_filter": FILTERS,
                "repair_request": ENTRIES,
                "content": st.sampled_from([b"", b"other", b"c" * 8_192]),
            },
        )
    )
    return encode(frame._replace(**changes))


@st.composite
def strangers(draw: st.DrawFn) -> tuple[Profile, list[bytes]]:
    """A profile, and bytes from strangers for participants that have it."""
    profile = draw(LOW_PROFILES)
    values = st.one_of(altered_frames(GENUINE[profile]), st.binary(max_size=60))
    return profile, draw(st.lists(values, min_size=1, max_size=20))


def assert_within_limits(channel: MessageChannel) -> None:
    """No memory has more than the profile allows."""
    state, profile = snapshot.SEAL.unpack(channel.snapshot()), channel.profile
    assert len(state.log_keys) == len(state.log_entries) <= profile.log_limit
    assert len(state.outgoing) <= profile.outgoing_limit
    assert len(state.waiting) <= profile.incoming_limit
    assert len(state.missing) <= profile.missing_limit
    assert len(state.lost) <= profile.missing_limit
    assert len(state.forgotten) <= profile.log_limit
    assert len(state.participants) <= profile.participants_limit
    assert len(state.requests) <= profile.repair_buffer_limit
    assert len(state.responses) <= profile.repair_buffer_limit
    assert len(state.retained) <= profile.repair_retained_limit
    for waiting in state.waiting:
        assert len(waiting.unmet) <= profile.history_limit
    values = [waiting.value for waiting in state.waiting]
    values += [retained.value for retained in state.retained.values()]
    assert all(len(value) <= profile.max_frame_bytes for value in values)
    entries = [*state.log_entries, *(one.entry for one in state.missing)]
    for entry in [*entries, *(entry for entry, _, _ in state.requests)]:
        assert len(entry.message_id) <= profile.id_limit
        assert len(entry.sender_id) <= profile.id_limit
        assert len(entry.retrieval_hint) <= profile.hint_limit


@CAREFUL
@given(strangers())
def test_arbitrary_frames_neither_crash_nor_fill_a_participant(
    drawn: tuple[Profile, list[bytes]],
) -> None:
    """It returns events, stays within its limits, and can be stored."""
    profile, values = drawn
    bob = participant(profile, "bob", Random(0))
    bob.send(b"text", START_MS)
    now_ms = START_MS
    for value in values:
        bob.receive(value, now_ms)
        assert_within_limits(bob)
        now_ms += SECOND
    for _ in range(20):
        now_ms = max(now_ms, bob.next_deadline_ms)
        bob.advance(now_ms)
        assert bob.next_deadline_ms > now_ms
        assert_within_limits(bob)
    again = MessageChannel.restore(bob.snapshot(), random=Random(0), profile=profile)
    assert again.snapshot() == bob.snapshot()


def assert_still_works(network: LossyNetwork, events: list[tuple[str, Event]]) -> None:
    """A message of either is delivered to the other, and acknowledged."""
    for sender, receiver in (("alice", "bob"), ("bob", "alice")):
        network.send(sender, b"still there?")
        sent = list(network.messages)[-1]
        expected = {(receiver, Delivered), (sender, Acknowledged)}
        for _ in network.moments(HOUR):
            happened = {
                (name, type(event))
                for name, event in events
                if isinstance(event, Delivered | Acknowledged)
                and event.message_id == sent
            }
            if happened == expected:
                break
        assert happened == expected


def channel_after(profile: Profile, values: Sequence[bytes]) -> None:
    """Let a channel of two hear these values, and see whether it still works."""
    events: list[tuple[str, Event]] = []

    def keep(name: str, _: int, step: Step) -> None:
        events.extend((name, event) for event in step.events)

    network = LossyNetwork(
        PARTICIPANTS,
        lambda name, random: participant(profile, name, random),
        each_step=keep,
    )
    for value in values:
        for name, one in network.participants.items():
            network.take(name, one.receive(value, network.now_ms))
        network.run(SECOND)
    assert_still_works(network, events)


@CAREFUL
@given(strangers())
def test_channel_works_after_arbitrary_frames(
    drawn: tuple[Profile, list[bytes]],
) -> None:
    """Both participants received the same frames at the same times."""
    channel_after(*drawn)


@CAREFUL
@given(
    st.sampled_from(ROOMY + LOW),
    st.sampled_from([None, HOUR]),
    st.lists(LAMPORTS, min_size=1, max_size=8),
)
def test_channel_works_after_arbitrary_timestamps(
    profile: Profile, lamport_max_ahead_ms: int | None, lamports: list[int]
) -> None:
    """Timestamps not adopted neither fill the log nor all histories."""
    frames = FrameFactory(dialect=profile.dialect)
    channel_after(
        replace(profile, lamport_max_ahead_ms=lamport_max_ahead_ms),
        [
            encode(frames.content(f"m{number}", "mallory", lamport))
            for number, lamport in enumerate(lamports)
        ],
    )


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
@pytest.mark.parametrize("threshold", [None, 2])
def test_useless_filters_take_bounded_memory(
    profile: Profile, threshold: int | None
) -> None:
    """Memory does not grow with the number of their senders."""
    bob = participant(
        replace(profile, possible_acks_threshold=threshold), "bob", Random(0)
    )
    bob.send(b"text", START_MS)
    frames = FrameFactory(dialect=profile.dialect)
    full = full_filter(profile.dialect)
    for number in range(2_000):
        said = frames.sync(f"mallory {number}", 1, filter_=full)
        bob.receive(encode(said), START_MS)
    (message,) = snapshot.SEAL.unpack(bob.snapshot()).outgoing
    assert len(message.seen_by) < 2_000


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_longest_ids_do_not_stop_a_participant_from_sending(
    profile: Profile,
) -> None:
    """Histories have ids of maximum length in four-byte characters."""
    bob = participant(profile, "bob", Random(0))
    frames = FrameFactory(dialect=profile.dialect)
    mallory = "\N{GRINNING FACE}" * profile.id_limit
    for number in range(profile.causal_history_size):
        message_id = f"{number:03}" + mallory[3:]
        bob.receive(encode(frames.content(message_id, mallory, number)), START_MS)
    bob.send(b"text", START_MS)
    assert bob.advance(bob.next_deadline_ms).broadcasts


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_longest_hints_do_not_stop_a_participant_from_sending(
    profile: Profile,
) -> None:
    """Histories have hints of maximum length."""
    bob = participant(profile, "bob", Random(0))
    frames = FrameFactory(dialect=profile.dialect)
    hint = b"h" * profile.hint_limit
    for number in range(profile.causal_history_size):
        value = encode(frames.content(f"m{number}", "alice", number))
        bob.receive(value, START_MS, retrieval_hint=hint)
    bob.send(b"text", START_MS)
    assert bob.advance(bob.next_deadline_ms).broadcasts


def with_least_frames(profile: Profile) -> Profile:
    """The same profile with the shortest frames that it allows."""
    with pytest.raises(ValueError, match="max_frame_bytes") as refused:
        replace(profile, max_frame_bytes=0)
    return replace(profile, max_frame_bytes=int(str(refused.value).split()[-1]))


@pytest.mark.parametrize("hint_bytes", [0, 30, 64, 4_096])
@pytest.mark.parametrize(
    "profile",
    [*ROOMY, replace(ROOMY[0], causal_history_size=ROOMY[0].history_limit)],
    ids=[*NAMES_OF_ROOMY, "longest history"],
)
def test_longest_requests_and_history_fit_the_smallest_frame_limit(
    profile: Profile, hint_bytes: int
) -> None:
    """All names and hints of requests have maximum length."""
    profile = with_least_frames(profile)
    longest = "\N{GRINNING FACE}" * profile.id_limit
    frames = FrameFactory(longest, profile.dialect)
    bob = MessageChannel(
        longest, longest, now_ms=START_MS, random=Random(0), profile=profile
    )
    for number in range(profile.causal_history_size):
        value = encode(frames.content(f"m{number}", "alice", number))
        bob.receive(value, START_MS, retrieval_hint=b"h" * hint_bytes)
    mallory = longest[1:] + "m"
    for number in range(profile.requests_per_message):
        wanted = HistoryEntry(
            f"{number}{longest[1:]}", b"h" * profile.hint_limit, mallory
        )
        named = frames.sync("mallory")._replace(causal_history=(wanted,))
        bob.receive(encode(named), START_MS)
    again = MessageChannel.restore(bob.snapshot(), random=Random(0), profile=profile)
    later_ms = START_MS + profile.t_max_ms
    for step in (
        bob.sync(later_ms),
        again.send(b"text", later_ms, message_id=longest),
    ):
        (broadcast,) = step.broadcasts
        requests = decode(broadcast.value).repair_request
        assert len(requests) == profile.requests_per_message


@pytest.mark.parametrize("profile", ROOMY, ids=NAMES_OF_ROOMY)
def test_history_of_a_hundred_thousand_entries_is_refused(profile: Profile) -> None:
    """The frame is counted as ignored, and nothing of it is stored."""
    bob = participant(replace(profile, max_frame_bytes=4_000_000), "bob", Random(0))
    before = bob.snapshot()
    history = [f"m{number}" for number in range(100_000)]
    frame = FrameFactory(dialect=profile.dialect).content(
        "m", "mallory", history=history
    )
    (event,) = bob.receive(encode(frame), START_MS).events
    assert isinstance(event, Ignored)
    assert event.reason is IgnoredReason.HISTORY_TOO_LONG
    assert bob.snapshot() == before


# Snapshots are no stranger's, but disks fail.


def busy_snapshot(profile: Profile) -> bytes:
    """The state of a participant that has something in every buffer."""
    bob = participant(profile, "bob", Random(0))
    bob.send(b"text", START_MS)
    for value in GENUINE[profile]:
        bob.receive(value, START_MS)
    return bob.snapshot()


SNAPSHOTS = {profile: busy_snapshot(profile) for profile in LOW}


@CAREFUL
@given(LOW_PROFILES, st.data())
def test_damaged_snapshot_is_refused_or_gives_a_participant(
    profile: Profile, data: st.DataObject
) -> None:
    """Any undocumented error would stop the program."""
    kept = bytearray(SNAPSHOTS[profile])
    for bit in data.draw(st.lists(st.integers(0, len(kept) * 8 - 1), max_size=4)):
        kept[bit >> 3] ^= 1 << (bit & 7)
    end = data.draw(st.integers(0, len(kept)) | st.just(len(kept)))
    blob = bytes(kept[:end])
    try:
        channel = MessageChannel.restore(blob, random=Random(0), profile=profile)
    except SnapshotError:
        return
    assert MessageChannel.restore(channel.snapshot(), random=Random(0), profile=profile)
