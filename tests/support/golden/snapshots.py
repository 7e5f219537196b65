"""Makes the golden snapshot of a participant.

``python -m tests.support.golden.snapshots`` writes that of the version at hand, unless
it is there: a released snapshot is never changed, since applications hold such ones.
``--rewrite`` is for a version that no release has written so far.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from sds_core.message_channel import MessageChannel
from sds_core.message_channel.snapshot import VERSION
from sds_core.wire import BloomFilter, BloomParameters, Dialect
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import CHANNEL, LASTING, participant, receive

SNAPSHOTS = Path(__file__).parents[2] / "golden" / "snapshots"

PROFILE = replace(
    LASTING,
    # Small enough to be committed, and to roll over.
    bloom=BloomParameters(40, 0.01),
    bloom_rollover_ids=10,
    bloom_kept_ids=5,
    log_limit=8,
    possible_acks_threshold=3,
    max_retries=1,
    lost_after_ms=100_000,
)

FAR_AHEAD = START_MS + 10**12
"""A timestamp of a clock that is 31 years fast."""

NOW_MS = START_MS + 150_000
"""When the snapshot is taken."""


def busy_participant() -> MessageChannel:
    """Return a participant with entries in every state in every buffer."""
    frames = FrameFactory(CHANNEL)
    alice = participant("alice", PROFILE)
    for number in range(7):
        receive(alice, frames.content(f"old{number}", "bob", START_MS - 100 + number))
    receive(alice, frames.sync("bob", START_MS, history=[("lost", "bob")]))
    alice.send(b"given up", START_MS, message_id="exhausted")
    alice.advance(START_MS + 30_000)
    alice.advance(START_MS + 60_000)
    alice.advance(START_MS + 100_000)
    alice.send(b"seen", START_MS + 110_000, message_id="seen")
    alice.note_retrieval_hint("seen", b"hint of seen")
    for sender, filter_ in (
        ("bob", filter_of("seen")),
        ("eve", b"\xff" * PROFILE.bloom.length_bytes),
    ):
        sync = frames.sync(sender, START_MS, filter_=filter_)
        receive(alice, sync, now_ms=START_MS + 120_000)
    alice.send(b"unacknowledged", START_MS + 125_000, message_id="unacknowledged")
    receive(
        alice,
        frames.content(
            "waiting", "carol", FAR_AHEAD, history=[("asked", "bob"), "old6"]
        ),
        frames.content("behind", "carol", START_MS + 9, history=["waiting", "late"]),
        now_ms=START_MS + 130_000,
    )
    alice.sync(START_MS + 140_000)
    receive(
        alice,
        frames.sync("dave", START_MS, requests=[("seen", "alice"), ("old6", "bob")]),
        frames.content("named", "carol", START_MS + 8, history=[("new", "carol")]),
        now_ms=NOW_MS,
    )
    return alice


def filter_of(*message_ids: str) -> bytes:
    """Return a filter of these ids, as another participant of the profile sends it."""
    filter_ = BloomFilter(Dialect.SPEC, PROFILE.bloom)
    filter_.add_all(message_ids)
    return filter_.to_wire()


def main() -> None:
    """Write the snapshot if it is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rewrite", action="store_true", help="also if it is there")
    path = SNAPSHOTS / f"v{VERSION}.bin"
    if parser.parse_args().rewrite or not path.exists():
        path.write_bytes(busy_participant().snapshot())


if __name__ == "__main__":
    main()
