"""A reliable channel on disk: it continues after its process was killed."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import pytest

from connectors.reliable_channel import create_reliable_channel
from connectors.storage.database import StorageError, StorageInUse, StorageUnreadable
from connectors.storage.reliable_channel import SqliteChannelStorage
from connectors.waku_rest.channel_node import RestNode
from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.connection import NodeSettings, open_client
from sds_core.reliable_channel import (
    Advance,
    Arrived,
    ChaChaEncryption,
    ConnectionChanged,
    Dispatched,
    DispatchFailed,
    Input,
    MessageReceived,
    Output,
    RateLimitOptions,
    ReliableChannelCore,
    ReliableChannelOptions,
    Restarted,
    Send,
    SendEphemeral,
    SendError,
    Start,
    StateError,
)
from sds_core.reliable_channel.journal import CHECKPOINT_ENTRIES, StoredChannel
from sds_core.reliable_channel.state import SEAL
from sds_core.waku import WakuMessage
from tests.support.frames import MINUTE, SECOND, START_MS, FrameFactory, value_of
from tests.support.reliable_channel import (
    CHANNEL,
    OPTIONS,
    SHARD,
    SMALL_SEGMENTS,
    TOPIC,
    channel,
    started,
)
from tests.support.reliable_channel.killed import QUICK
from tests.support.waku_node import ConformanceNode

LIMITED = replace(
    OPTIONS,
    segmentation=SMALL_SEGMENTS,
    rate_limit=RateLimitOptions(messages_per_epoch=40, epoch_ms=20 * SECOND),
)


def cipher() -> ChaChaEncryption:
    """A real cipher, whose nonces no replay can draw again; every 9th call fails."""
    calls = itertools.count(1)

    def nonce(count: int) -> bytes:
        return os.urandom(count) if next(calls) % 9 else b""

    return ChaChaEncryption(bytes(32), CHANNEL, nonce)


def opened(
    path: Path, options: ReliableChannelOptions = LIMITED
) -> tuple[SqliteChannelStorage, StoredChannel]:
    """Open or continue the channel of a file."""
    storage = SqliteChannelStorage(path)

    def restore(blob: bytes) -> ReliableChannelCore:
        return ReliableChannelCore.restore(
            blob, pubsub_topic=SHARD, options=options, encryption=cipher()
        )

    def create() -> ReliableChannelCore:
        return channel("alice", options, encryption=cipher())

    return storage, StoredChannel.open(storage, create, restore)


def live(stored: StoredChannel, random: Random, steps: int) -> Output:
    """Apply many inputs of all kinds; returns the last output."""
    bob = started("bob", LIMITED, encryption=cipher())
    now_ms = START_MS
    output = stored.apply(ConnectionChanged(True, True), now_ms)
    output = stored.apply(Start(), now_ms)
    for _ in range(steps):
        now_ms += random.randint(1, 700)
        payload = random.randbytes(random.randint(1, 600))
        match random.randrange(4):
            case 0:
                output = stored.apply(Send(payload), now_ms)
            case 1:
                output = stored.apply(SendEphemeral(payload[:100]), now_ms)
            case 2:
                for one in bob.apply(Send(payload), now_ms).dispatches:
                    arrived = Arrived(one.message, one.message_hash)
                    output = stored.apply(arrived, now_ms)
            case _:
                output = stored.apply(Advance(), now_ms)
        for one in output.dispatches[: random.randint(0, 2)]:
            number = one.number
            answer = random.choices(
                [
                    Dispatched(number),
                    DispatchFailed(number),
                    DispatchFailed(number, SendError.RLN_PROOF_FAILED),
                ],
                weights=[6, 1, 1],
            )
            output = stored.apply(*answer, now_ms)
    return output


@pytest.mark.parametrize("seed", range(5))
def test_replayed_channel_has_the_state_of_the_first(tmp_path: Path, seed: int) -> None:
    """Byte for byte, with encryption, segments, a rate limit, losses and refusals."""
    storage, stored = opened(tmp_path / "alice.sqlite")
    output = live(stored, Random(seed), 150)
    storage.close()
    storage, again = opened(tmp_path / "alice.sqlite")
    assert again.unconfirmed == output.events
    assert again.core.snapshot() == stored.core.snapshot()
    storage.close()


@pytest.mark.parametrize(
    "changed",
    [
        replace(LIMITED, segmentation=None),
        replace(LIMITED, rate_limit=None),
        replace(LIMITED, rate_limit=RateLimitOptions(messages_per_epoch=1)),
        replace(LIMITED, meta=b"other"),
    ],
)
def test_other_options_apply_from_the_restart_on(
    tmp_path: Path, changed: ReliableChannelOptions
) -> None:
    """The journal is replayed with those that it was written with."""
    path = tmp_path / "alice.sqlite"
    storage, stored = opened(path)
    live(stored, Random(1), 150)
    storage.close()
    before = stored.core.snapshot()
    storage, again = opened(path, changed)
    assert again.core.snapshot() == before
    for one in (Restarted(), ConnectionChanged(True, True), Start(), Send(bytes(900))):
        again.apply(one, START_MS + 1_000 * SECOND)
    storage.close()
    # These are the options of what came after the restart, too.
    storage, third = opened(path)
    assert third.core.snapshot() == again.core.snapshot()
    storage.close()


def test_options_of_each_restart_are_replayed(tmp_path: Path) -> None:
    """A second restart may have others, before a state was stored."""
    path = tmp_path / "alice.sqlite"
    storage, _ = opened(path)
    storage.close()
    changed = replace(LIMITED, segmentation=None)
    storage, again = opened(path, changed)
    for one in (Restarted(changed), Start(), Send(bytes(900))):
        again.apply(one, START_MS, while_emitting=True)
    storage.close()
    storage, third = opened(path)
    assert third.core.snapshot() == again.core.snapshot()
    storage.close()


AFTER_RESTART = (
    Restarted(LIMITED),
    ConnectionChanged(True, True),
    Start(),
    Send(bytes(900)),
)


def test_clock_that_is_set_back_at_a_restart_is_replayed(tmp_path: Path) -> None:
    """To its very times."""
    path = tmp_path / "alice.sqlite"
    storage, stored = opened(path)
    live(stored, Random(1), 50)
    storage.close()
    storage, again = opened(path)
    for one in AFTER_RESTART:
        again.apply(one, START_MS - MINUTE, while_emitting=True)
    assert again.core.latest_ms == START_MS - MINUTE
    storage.close()
    storage, third = opened(path)
    assert third.core.snapshot() == again.core.snapshot()
    storage.close()


def test_journal_of_an_older_release_sets_no_time_back(tmp_path: Path) -> None:
    """Time stood still there, and ids of messages depend on the time."""
    path = tmp_path / "alice.sqlite"
    storage, stored = opened(path)
    live(stored, Random(1), 50)
    core = stored.core
    for one in AFTER_RESTART:
        output = core.apply(one, core.latest_ms)
        entry = (one, START_MS - MINUTE, output.ciphertexts, True)
        storage.append(msgspec.msgpack.encode(entry))
    storage.close()
    storage, again = opened(path)
    assert again.core.snapshot() == core.snapshot()
    storage.close()


def test_journal_of_an_older_release_has_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1.1.0 stored messages for a shorter time, and answered fewer repair requests."""
    path, now_ms = tmp_path / "alice.sqlite", START_MS + 15 * MINUTE

    def answered(event: Input, now_ms: int) -> None:
        for one in first.apply(event, now_ms).dispatches:
            first.apply(Dispatched(one.number), now_ms)

    with monkeypatch.context() as older:
        profile = LIMITED.earlier_participant_profile()
        older.setattr(ReliableChannelOptions, "participant_profile", lambda _: profile)
        storage, first = opened(path)
        stored = storage.load()
        assert stored is not None
        state = SEAL.unpack(stored.state)
        state.profile = None
        storage.replace(SEAL.pack(state))
        answered(ConnectionChanged(True, False), START_MS)
        answered(Start(), START_MS)
        answered(Send(b"old"), START_MS)
        (old,) = first.core._participant.log  # noqa: SLF001 - it is not published
        frame = FrameFactory(CHANNEL).sync("bob", requests=[(old, "alice")])
        request = cipher().encrypt(value_of(frame))
        answered(Arrived(WakuMessage(request, TOPIC, now_ms)), now_ms)
        for later_ms in range(SECOND, 10 * MINUTE, SECOND):
            answered(Advance(), now_ms + later_ms)
        storage.close()
    storage, again = opened(path)
    assert again.core.snapshot() == first.core.snapshot()
    again.apply(Restarted(LIMITED), now_ms)
    state = SEAL.unpack(again.core.snapshot())
    assert state.profile == LIMITED.participant_profile()
    storage.close()


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """Before the application starts with them."""
    path = tmp_path / "alice.sqlite"
    storage, stored = opened(path)
    live(stored, Random(1), 20)
    stored.checkpoint()
    storage.close()
    bloom = replace(LIMITED.profile.bloom, capacity=7)
    other = replace(LIMITED, profile=replace(LIMITED.profile, bloom=bloom))
    with pytest.raises(StateError, match="bloom"):
        opened(path, other)


def test_state_replaces_the_journal_from_time_to_time(tmp_path: Path) -> None:
    """Otherwise each restart would take longer than the one before."""
    path = tmp_path / "alice.sqlite"
    storage, stored = opened(path)
    stored.apply(Start(), START_MS)
    for number in range(CHECKPOINT_ENTRIES + 10):
        stored.apply(Send(b"%d" % number), START_MS + number)
    loaded = storage.load()
    assert loaded is not None
    entries = len(list(loaded.entries))
    assert entries == 11
    storage.close()
    storage, again = opened(path)
    assert again.core.snapshot() == stored.core.snapshot()
    storage.close()


def test_event_that_the_application_may_not_have_seen_comes_again(
    tmp_path: Path,
) -> None:
    """The process may end between the journal and the handler."""
    storage, stored = opened(tmp_path / "alice.sqlite")
    stored.apply(Start(), START_MS)
    bob = started("bob", LIMITED, encryption=cipher())
    (sent,) = bob.apply(Send(b"tea"), START_MS).dispatches
    stored.apply(Arrived(sent.message, sent.message_hash), START_MS)
    storage.close()
    storage, again = opened(tmp_path / "alice.sqlite")
    assert again.unconfirmed == [MessageReceived(b"tea", "bob")]
    again.apply(Restarted(), START_MS + 1)
    storage.close()
    storage, third = opened(tmp_path / "alice.sqlite")
    assert third.unconfirmed == []
    storage.close()


def test_events_around_an_input_of_the_application_come_again(tmp_path: Path) -> None:
    """It may have sent a message at the first of several events."""
    storage, stored = opened(tmp_path / "alice.sqlite")
    stored.apply(Start(), START_MS)
    bob = started("bob", LIMITED, encryption=cipher())
    # The journal is full when the message arrives.
    for _ in range(CHECKPOINT_ENTRIES - 2):
        stored.apply(Advance(), START_MS)
    (sent,) = bob.apply(Send(b"tea"), START_MS).dispatches
    received = stored.apply(Arrived(sent.message, sent.message_hash), START_MS)
    assert received.events == [MessageReceived(b"tea", "bob")]
    reply = stored.apply(Send(b"thanks"), START_MS, while_emitting=True)
    storage.close()
    storage, again = opened(tmp_path / "alice.sqlite")
    assert again.unconfirmed == received.events + reply.events
    again.apply(Restarted(), START_MS, while_emitting=True)
    storage.close()
    storage, third = opened(tmp_path / "alice.sqlite")
    assert third.unconfirmed == received.events + reply.events
    storage.close()


def test_file_of_another_channel_is_refused(tmp_path: Path) -> None:
    """With both identities."""
    storage, _ = opened(tmp_path / "alice.sqlite")

    def restore(blob: bytes) -> ReliableChannelCore:
        return ReliableChannelCore.restore(blob, pubsub_topic=SHARD, options=LIMITED)

    with pytest.raises(StateError, match=r"belongs to 'alice' in .* not to 'bob' in"):
        StoredChannel.open(storage, lambda: channel("bob", LIMITED), restore)
    storage.close()


def test_second_process_is_refused(tmp_path: Path) -> None:
    """Two of one sender would contradict each other."""
    storage, _ = opened(tmp_path / "alice.sqlite")
    with pytest.raises(StorageInUse, match="another process"):
        SqliteChannelStorage(tmp_path / "alice.sqlite")
    storage.close()
    SqliteChannelStorage(tmp_path / "alice.sqlite").close()


@pytest.mark.parametrize("content", [b"no database" * 100, None])
def test_unusable_file_is_refused_with_its_path(
    tmp_path: Path, content: bytes | None
) -> None:
    """Another file, and a directory that does not let it be made."""
    path = tmp_path / "alice.sqlite"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(StorageError, match=r"alice\.sqlite"):
        SqliteChannelStorage(path)


@pytest.mark.parametrize(
    ("damage", "content"),
    [
        ("state", b"\x01\xff\xff"),
        ("journal", b"\x01\xff\xff"),
        ("journal", b"\x93\x91\xa5St\xffrt\x01\x90"),
    ],
)
def test_damaged_contents_are_refused(
    tmp_path: Path, damage: str, content: bytes
) -> None:
    """Neither is continued as if it were empty."""
    path = tmp_path / "alice.sqlite"
    storage, stored = opened(path)
    stored.apply(Start(), START_MS)
    storage.close()
    column = {"state": "state", "journal": "entry"}[damage]
    database = sqlite3.connect(path)
    with database:
        database.execute(f"UPDATE {damage} SET {column} = ?", (content,))  # noqa: S608
    database.close()
    with pytest.raises(StateError):
        opened(path)


def test_damage_that_is_met_later_is_an_error_of_the_storage(tmp_path: Path) -> None:
    """SQLite opens a file whose later pages are damaged."""
    path = tmp_path / "alice.sqlite"
    with SqliteChannelStorage(path) as storage:
        for number in range(100):
            storage.append(bytes([number]) * 1_000)
        storage.replace(b"state")
        for number in range(100):
            storage.append(bytes([number]) * 1_000)
    content = path.read_bytes()
    path.write_bytes(content[:8_192] + b"\x55" * (len(content) - 8_192))
    with SqliteChannelStorage(path) as storage:
        stored = storage.load()
        assert stored is not None
        with pytest.raises(StorageUnreadable):
            list(stored.entries)


@pytest.mark.slow
def test_channel_continues_after_kill_9(tmp_path: Path) -> None:
    """Every message whose `send` had returned arrives, each once, in order."""
    path = tmp_path / "alice.sqlite"
    per_life = 40
    with ConformanceNode() as waku:
        returned: list[int] = []
        for life in range(3):
            arguments = [str(path), waku.url, str(life * per_life), str(per_life)]
            module = "tests.support.reliable_channel.killed"
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None
            with process:
                # In the middle of the sending.
                for line in process.stdout:
                    returned.append(int(line))
                    if len(returned) % per_life == per_life // 2 + life:
                        break
                process.send_signal(signal.SIGKILL)
                returned += map(int, process.stdout)
        received = asyncio.run(listen_as_alice_continues(waku, path, set(returned)))
    # The kill may come between the journal and the print: at most one more a life.
    assert received == sorted(set(received))
    assert len(set(received) - set(returned)) <= 3


async def listen_as_alice_continues(
    waku: ConformanceNode, path: Path, returned: set[int]
) -> list[int]:
    """Continue the killed channel here, and return what another one receives."""
    received: list[int] = []
    async with open_client(NodeSettings(waku.url)) as http:
        client = NodeClient(waku.url, http)
        node = RestNode(client, client, poll_s=0.05)
        with SqliteChannelStorage(path) as storage:
            alice = await create_reliable_channel(
                node, CHANNEL, "alice", TOPIC, QUICK, storage=storage
            )
            bob = await create_reliable_channel(
                node, CHANNEL, "bob", TOPIC, replace(QUICK, auto_start=False)
            )
            bob.on("message-received", lambda one: received.append(int(one.payload)))
            await bob.start()
            async with asyncio.timeout(30):
                while not returned <= set(received):
                    await asyncio.sleep(0.05)
            for one in (alice, bob):
                await one.stop()
        await node.close()
    return received
