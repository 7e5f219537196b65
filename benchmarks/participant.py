"""Measures what a participant costs: unknown ids at full buffers, and its storage.

    python -m benchmarks.participant

Processor time of one process; it runs ten seconds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from statistics import median

from rich.console import Console
from rich.table import Table

from connectors.storage.participants import ParticipantStore
from sds_core.message_channel import MessageChannel, Profile
from sds_core.wire import Frame, HistoryEntry, encode

START_MS = 1_760_000_000_000
MESSAGES = 1_000
CONTENT = b"x" * 100

PROFILES = {
    "default": Profile(),
    "spec": Profile.spec(),
    "js_sds": Profile.js_sds(),
    "nim_sds": Profile.nim_sds(),
}


def main() -> None:
    """Print one table."""
    table = Table("", *PROFILES)
    rows = [dict(measured(profile)) for profile in PROFILES.values()]
    for name in rows[0]:
        table.add_row(name, *(row[name] for row in rows))
    Console().print(table)


def measured(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each figure of a profile."""
    yield "a frame with unknown ids, full buffers, ms", f"{unknown_ids_ms(profile):.1f}"
    with (
        tempfile.TemporaryDirectory() as directory,
        ParticipantStore(Path(directory) / "participants.sqlite") as store,
    ):
        yield from storage(profile, store)


def unknown_ids_ms(profile: Profile) -> float:
    """Return the time for one of the longest histories, all of its ids unknown."""
    channel = participant("alice", profile)
    full = profile.missing_limit // profile.history_limit + 1
    times_ms = []
    for number in range(3 * full):
        frame = Frame.build(
            profile.dialect,
            message_id="sync",
            channel_id=channel.channel_id,
            sender_id="bob",
            lamport=START_MS // profile.lamport_unit_ms,
            causal_history=[
                HistoryEntry(f"{number}-{entry}", b"", "carol")
                for entry in range(profile.history_limit)
            ],
        )
        value = encode(frame)
        elapsed_ms = took_ms(partial(channel.receive, value, START_MS))
        if number > full:
            times_ms.append(elapsed_ms)
    return median(times_ms)


def storage(profile: Profile, store: ParticipantStore) -> Iterator[tuple[str, str]]:
    """Yield what it costs to store a participant with many messages."""
    alice = store.open(
        "channel", "alice", now_ms=START_MS, random=_random(), profile=profile
    )
    bob = participant("bob", profile)

    def receive(number: int) -> None:
        now_ms = START_MS + number
        alice.receive(bob.send(CONTENT, now_ms).broadcasts[0].value, now_ms)

    for number in range(MESSAGES):
        receive(number)
    store.append(alice)
    snapshot = alice.snapshot()
    yield "a snapshot, MB", f"{len(snapshot) / 1e6:.1f}"
    yield "a snapshot, ms", f"{median(took_ms(alice.snapshot) for _ in range(9)):.1f}"
    appended_ms = 0.0
    for number in range(MESSAGES, 2 * MESSAGES):
        receive(number)
        appended_ms += took_ms(lambda: store.append(alice))
    yield "append of a received message, ms", f"{appended_ms / MESSAGES:.2f}"


def participant(name: str, profile: Profile) -> MessageChannel:
    """Return a new participant."""
    return MessageChannel(
        "channel", name, now_ms=START_MS, random=_random(), profile=profile
    )


def _random() -> Random:
    return Random(1)  # noqa: S311 - the same draws in every run


def took_ms(call: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    begin_ns = time.process_time_ns()
    call()
    return (time.process_time_ns() - begin_ns) / 1e6


if __name__ == "__main__":
    main()
