"""Participants in an SQLite file: what is there after any end of the process."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from connectors.storage.database import (
    StorageError,
    StorageInUse,
    StorageUnreadable,
)
from connectors.storage.participants import ParticipantStore
from sds_core.message_channel import MessageChannel, Profile, SnapshotError
from tests.support.frames import SECOND, START_MS, FrameFactory
from tests.support.message_channel.repair_bus import SPEC
from tests.support.message_channel.stored_speaker import opened
from tests.support.participants import CHANNEL, receive

FRAMES = FrameFactory(CHANNEL)
DAY_MS = 86_400 * SECOND


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a store that does not exist yet."""
    return tmp_path / "participants.sqlite"


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What a query finds in a closed store."""
    database = sqlite3.connect(path)
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


def speak(
    store: ParticipantStore, channel: MessageChannel, count: int, first: int = 0
) -> None:
    """Send messages that others acknowledge, and store each."""
    for number in range(first, first + count):
        now_ms = START_MS + number * SECOND
        channel.send(b"x" * 100, now_ms, message_id=f"m{number}")
        store.append(channel)
        receive(channel, FRAMES.sync("bob", history=[f"m{number}"]), now_ms=now_ms)
        store.append(channel)


class TestSuddenEnd:
    def test_participant_continues_after_kill_9(self, path: Path) -> None:
        """At any moment, several times: all that others may have received is there."""
        module = "tests.support.message_channel.stored_speaker"
        expected: list[dict[str, Any]] = []
        for lines in (1, 7, 30):
            program = subprocess.Popen(
                [sys.executable, "-m", module, str(path)],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert program.stdout is not None
            said = [program.stdout.readline() for _ in range(lines)]
            program.kill()
            said += program.stdout.readlines()
            program.stdout.close()
            program.wait()
            # The last line may be cut off; what it says was stored before.
            expected += [json.loads(line) for line in said if line.endswith("\n")]
            with ParticipantStore(path) as store:
                alice = opened(store)
                assert alice.lamport >= expected[-1]["lamport"]
                ids = {one[key] for one in expected for key in ("sent", "received")}
                assert ids <= set(alice.log)
                last = expected[-1]
                value = alice.frame_of(last["sent"], alice.lamport)
                assert value == bytes.fromhex(last["value"])
        assert len({one["sent"] for one in expected}) == len(expected)

    def test_state_is_that_of_the_last_change(self, path: Path) -> None:
        """Byte for byte, as a snapshot would have it."""
        with ParticipantStore(path) as store:
            channel = opened(store)
            speak(store, channel, 5)
            expected = channel.snapshot()
        with ParticipantStore(path) as store:
            assert opened(store, "other").snapshot() == expected

    def test_change_that_was_not_stored_is_gone(self, path: Path) -> None:
        """The application stores before it broadcasts."""
        with ParticipantStore(path) as store:
            channel = opened(store)
            speak(store, channel, 2)
            channel.send(b"hi", START_MS + 9 * SECOND, message_id="unsaid")
        with ParticipantStore(path) as store:
            assert opened(store).log == ("m0", "m1")

    def test_last_message_can_be_read_however_late_the_restart_is(
        self, path: Path
    ) -> None:
        """Its event may be lost; it is stored for repairs for a shorter time."""
        with ParticipantStore(path) as store:
            channel = opened(store)
            receive(channel, FRAMES.content("last", "bob", text=b"tea"))
            store.append(channel)
        with ParticipantStore(path) as store:
            channel = opened(store)
            assert channel.log == ("last",)
            assert channel.content_of("last", START_MS + DAY_MS) is None
            assert channel.content_of("last", channel.latest_ms) == b"tea"


class TestCost:
    def test_message_costs_a_thousandth_of_a_snapshot(self, path: Path) -> None:
        """In bytes, which a busy machine does not change; time follows them."""
        with ParticipantStore(path) as store:
            channel = store.open(
                CHANNEL,
                "alice",
                now_ms=START_MS,
                random=Random(1),
                profile=Profile.spec(),
            )
            store_limit = channel.profile.repair_retained_limit
            for number in range(store_limit):
                channel.send(b"hi", START_MS + number)
            snapshot = len(channel.snapshot())
            channel.take_changes()
            channel.send(b"hi", START_MS + store_limit)
            (record,) = channel.take_changes()
        assert len(record) < snapshot / store_limit

    def test_snapshot_replaces_changes_once_they_are_as_long(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The file stays within a small multiple of the state, for any traffic."""
        monkeypatch.setattr("connectors.storage.participants._LEAST_CHANGE_BYTES", 0)
        most = 0
        with ParticipantStore(path) as store:
            channel = opened(store)
            for number in range(60):
                speak(store, channel, 1, first=number)
                snapshot = len(channel.snapshot())
                stored = sum(file.stat().st_size for file in path.parent.iterdir())
                most = max(most, stored - 3 * snapshot)
            expected = channel.snapshot()
        query = "SELECT sum(length(record)) FROM change"
        ((change_bytes,),) = rows(path, query)
        assert (change_bytes or 0) <= len(expected)
        # SQLite's log of changes is emptied every thousand pages of 4 kB.
        assert most < 5 * 2**20
        with ParticipantStore(path) as store:
            assert opened(store).snapshot() == expected

    def test_calls_without_effect_write_nothing(self, path: Path) -> None:
        """A copy of a known frame leaves no row."""
        frame = FRAMES.content("m", "bob")
        with ParticipantStore(path) as store:
            channel = opened(store)
            for _ in range(5):
                receive(channel, frame)
                store.append(channel)
        assert rows(path, "SELECT count(*) FROM change") == [(1,)]


class TestFile:
    def test_participants_of_several_channels_share_a_file(self, path: Path) -> None:
        """Each has its own state and changes."""
        expected = {}
        with ParticipantStore(path) as store:
            for channel_id, name in (("tea", "a"), ("tea", "b"), ("coffee", "a")):
                channel = store.open(
                    channel_id, name, now_ms=START_MS, random=Random(1), profile=SPEC
                )
                channel.send(b"hi", START_MS, message_id=f"{channel_id} {name}")
                store.append(channel)
                expected[channel_id, name] = channel.log
        with ParticipantStore(path) as store:
            for (channel_id, name), log in expected.items():
                channel = store.open(
                    channel_id, name, now_ms=START_MS, random=Random(1), profile=SPEC
                )
                assert channel.log == log

    def test_second_process_is_refused(self, path: Path) -> None:
        """Two would continue the same participant with different messages."""
        with ParticipantStore(path), pytest.raises(StorageInUse) as caught:
            ParticipantStore(path)
        assert caught.value.path == path
        ParticipantStore(path).close()

    def test_other_file_is_refused(self, path: Path) -> None:
        """And stays as it was."""
        path.write_bytes(b"no database, but long enough to be one" * 100)
        before = path.read_bytes()
        with pytest.raises(StorageUnreadable, match="not a database"):
            ParticipantStore(path)
        assert path.read_bytes() == before

    def test_damage_that_is_met_later_is_an_error_of_the_storage(
        self, path: Path
    ) -> None:
        """SQLite opens a file whose later pages are damaged."""
        with ParticipantStore(path) as store:
            speak(store, opened(store), 40)
        content = path.read_bytes()
        path.write_bytes(content[:8_192] + b"\x55" * (len(content) - 8_192))
        with ParticipantStore(path) as store, pytest.raises(StorageUnreadable):
            opened(store)

    def test_database_of_another_program_is_refused(self, path: Path) -> None:
        """Its tables stay alone."""
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE theirs (one)")
        database.close()
        with pytest.raises(
            StorageUnreadable, match="the file is not a database of the expected kind"
        ):
            ParticipantStore(path)
        assert rows(path, "SELECT name FROM sqlite_master") == [("theirs",)]

    def test_store_of_a_later_version_is_refused(self, path: Path) -> None:
        """The error has both versions."""
        ParticipantStore(path).close()
        database = sqlite3.connect(path)
        database.execute("PRAGMA user_version = 2")
        database.close()
        with pytest.raises(
            StorageUnreadable, match="has version 2, but this program reads version 1"
        ):
            ParticipantStore(path)

    def test_other_options_are_refused(self, path: Path) -> None:
        """The state would get another meaning; the store stays as it was."""
        with ParticipantStore(path) as store:
            speak(store, opened(store), 2)
            other = replace(SPEC, t_max_ms=SPEC.t_max_ms + 1)
            with pytest.raises(SnapshotError, match="t_max_ms"):
                store.open(
                    CHANNEL, "alice", now_ms=START_MS, random=Random(1), profile=other
                )
        with ParticipantStore(path) as store:
            assert opened(store).log == ("m0", "m1")

    @pytest.mark.parametrize("failing", ["change", "snapshot"])
    @pytest.mark.parametrize("later", [[], ["second"]], ids=["retry", "call"])
    def test_failed_write_is_made_up_for_by_the_next(
        self,
        path: Path,
        monkeypatch: pytest.MonkeyPatch,
        failing: str,
        later: list[str],
    ) -> None:
        """A snapshot then stores what is missing, with or without a new change."""
        limit = "connectors.storage.participants._LEAST_CHANGE_BYTES"
        with ParticipantStore(path) as store:
            channel = opened(store)
            speak(store, channel, 1)
            # Nobody else can reach a store that is open.
            database = store._database  # noqa: SLF001
            database.execute("PRAGMA query_only = ON")
            size = 2**17 if failing == "snapshot" else 2
            with monkeypatch.context() as patch:
                patch.setattr(limit, 2**16)
                channel.send(b"h" * size, START_MS + SECOND, message_id="first")
                with pytest.raises(StorageError):
                    store.append(channel)
            database.execute("PRAGMA query_only = OFF")
            for message_id in later:
                channel.send(b"hi", START_MS + 2 * SECOND, message_id=message_id)
            store.append(channel)
        with ParticipantStore(path) as store:
            assert opened(store).log == ("m0", "first", *later)

    def test_store_can_wait_for_the_disk(self, path: Path) -> None:
        """With the same content."""
        with ParticipantStore(path, survives_power_loss=True) as store:
            speak(store, opened(store), 2)
        with ParticipantStore(path) as store:
            assert opened(store).log == ("m0", "m1")
