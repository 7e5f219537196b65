"""A program that speaks until it is killed, and stores what it does.

``python -m tests.support.message_channel.stored_speaker FILE``: one line of JSON for
each message, printed once it may be broadcast.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from connectors.storage.participants import ParticipantStore
from sds_core.message_channel import MessageChannel
from tests.support.frames import SECOND, START_MS
from tests.support.message_channel.repair_bus import SPEC
from tests.support.participants import CHANNEL, participant


def opened(store: ParticipantStore, seed: str = "speaker") -> MessageChannel:
    """Return the stored participant."""
    return store.open(
        CHANNEL, "alice", now_ms=START_MS, random=Random(seed), profile=SPEC
    )


def main() -> None:
    """Speak and listen in turn, for ever."""
    bob = participant("bob", SPEC)
    with ParticipantStore(Path(sys.argv[1])) as store:
        alice = opened(store)
        now_ms = alice.lamport
        while True:
            now_ms += SECOND
            step = alice.send(b"text", now_ms)
            store.append(alice)
            (sent,) = step.broadcasts
            bob.receive(sent.value, now_ms)
            reply = bob.send(b"reply", now_ms).broadcasts[0]
            alice.receive(reply.value, now_ms)
            alice.advance(now_ms)
            store.append(alice)
            said = {
                "sent": sent.message_id,
                "value": sent.value.hex(),
                "received": reply.message_id,
                "lamport": alice.lamport,
            }
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
