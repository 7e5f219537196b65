"""Whatever happens to a channel, it raises nothing, stays bounded, and goes on."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sds_core.message_channel import MessageChannel
from sds_core.reliable_channel import (
    Advance,
    Arrived,
    ConnectionChanged,
    Dispatched,
    DispatchFailed,
    Input,
    Limits,
    MessageReceived,
    NotStarted,
    RateLimitOptions,
    ReliableChannelCore,
    Restarted,
    Send,
    SendEphemeral,
    SendError,
    Start,
    Stop,
    StoreAnswered,
    StoreFailed,
)
from sds_core.waku import WakuMessage
from tests.support.frames import MINUTE, START_MS
from tests.support.reliable_channel import (
    CHANNEL,
    OPTIONS,
    PROFILE,
    SHARD,
    SMALL_SEGMENTS,
    TOPIC,
    channel,
    emitted,
    network,
    sent,
)

LIMITS = Limits(
    messages=3,
    retries=3,
    retries_bytes=4_000,
    queue=4,
    queue_bytes=6_000,
    intake=3,
    intake_bytes=6_000,
    missing=3,
    hashes_per_query=2,
    pages_per_query=2,
)
TIGHT = replace(
    OPTIONS,
    segmentation=SMALL_SEGMENTS,
    rate_limit=RateLimitOptions(messages_per_epoch=4),
    timeout_for_lost_messages_ms=MINUTE,
    limits=LIMITS,
)


def frames() -> list[bytes]:
    """Return frames of a speaker that name each other, and of another channel."""
    found = []
    for channel_id in (CHANNEL, "coffee"):
        speaker = MessageChannel(
            channel_id, "bob", now_ms=START_MS, random=Random(1), profile=PROFILE
        )
        for number in range(8):
            step = speaker.send(b"message %d" % number, START_MS + number)
            found.append(step.broadcasts[0].value)
            message_id = step.broadcasts[0].message_id
            speaker.note_retrieval_hint(message_id, b"%032d" % number)
    return found


FRAMES = frames()

messages = st.builds(
    WakuMessage,
    st.one_of(st.sampled_from(FRAMES), st.binary(max_size=60)),
    st.sampled_from([TOPIC, "/other/1/x/proto"]),
)
arrivals = st.builds(Arrived, messages, st.binary(max_size=40))
numbers = st.integers(0, 12)
inputs: st.SearchStrategy[Input] = st.one_of(
    st.just(Start()),
    st.just(Stop()),
    st.just(Restarted()),
    st.just(Advance()),
    st.builds(Send, st.binary(max_size=900)),
    st.builds(SendEphemeral, st.binary(max_size=300)),
    arrivals,
    st.builds(Dispatched, numbers),
    st.builds(DispatchFailed, numbers, st.sampled_from([None, *SendError])),
    st.builds(
        StoreAnswered,
        numbers,
        st.lists(arrivals, max_size=4),
        st.sampled_from([None, bytes(32)]),
    ),
    st.builds(StoreFailed, numbers),
    st.builds(ConnectionChanged, st.booleans(), st.booleans()),
)
# Only `Restarted` sets the time back.
waits_ms = st.integers(-200_000, 400_000)
steps = st.lists(st.tuples(inputs, waits_ms), min_size=1, max_size=60)


@settings(max_examples=150)
@given(steps)
def test_any_inputs_leave_a_channel_that_can_be_stored_and_goes_on(
    given_steps: list[tuple[Input, int]],
) -> None:
    """Nothing raises, limits hold, and one restored in the middle does the same."""
    alice = channel("alice", TIGHT)
    alice.apply(Start(), START_MS)
    again = alice
    now_ms = START_MS
    for number, (event, wait_ms) in enumerate(given_steps):
        if number == len(given_steps) // 2:
            blob = alice.snapshot()
            again = ReliableChannelCore.restore(blob, pubsub_topic=SHARD, options=TIGHT)
        now_ms += wait_ms
        try:
            output = alice.apply(event, now_ms)
        except NotStarted:
            assert not alice.is_started
            continue
        if again is not alice:
            assert again.apply(event, now_ms) == output
            assert again.next_deadline_ms == alice.next_deadline_ms
        assert len(output.queries) <= 2
        assert alice.next_deadline_ms > now_ms
        assert len(alice.missing) <= LIMITS.missing
    assert again.snapshot() == alice.snapshot()


@settings(max_examples=25)
@example(0, 4, 0.234375)
@given(st.integers(0, 10**6), st.integers(2, 4), st.floats(0, 0.3))
def test_everything_said_is_received_by_everybody(
    seed: int, participants: int, loss: float
) -> None:
    """Whatever is lost, in whatever order: once, and own messages by nobody."""
    random = Random(seed)
    names = [f"participant {number}" for number in range(participants)]
    # As by default: a chunk that nobody has stored may take many minutes.
    patient = replace(SMALL_SEGMENTS, idle_timeout_ms=60 * MINUTE)
    options = replace(OPTIONS, segmentation=patient)
    net = network(*names, options=options, loss=loss, seed=seed)
    said: dict[str, list[bytes]] = {name: [] for name in names}
    for number in range(12):
        name = random.choice(names)
        payload = b"%d " % number + random.randbytes(random.randint(0, 700))
        said[name].append(payload)
        net.apply(name, Send(payload))
        net.run(random.randint(1, 20_000))
    net.run(60 * MINUTE)
    for name in names:
        received = [one.payload for one in emitted(net, name, MessageReceived)]
        others = [one for other in names if other != name for one in said[other]]
        assert sorted(received) == sorted(others)
    assert len(sent(net)) < 60 * 60 * participants
