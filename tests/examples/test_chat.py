"""The example chat: processes on a lossy network, one of which is killed."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.chat import running


@pytest.mark.slow
def test_chat_brings_a_mebibyte_over_losses_and_a_kill(tmp_path: Path) -> None:
    """In order, with progress, although the receiver is killed in the middle."""
    payload = os.urandom(1024 * 1024)
    file = tmp_path / "large"
    file.write_bytes(payload)
    expected = [
        "alice: The kettle is on.",
        f"alice: 1,048,576 bytes, SHA-256 {sha256(payload).hexdigest()}",
        "alice: Tea is ready.",
    ]
    with running("examples.chat.network", "--port", "0", "--loss", "0.1") as network:
        port = network.until("on port").split()[3].rstrip(",")

        def join(name: str) -> tuple[str, ...]:
            storage = str(tmp_path / f"{name}.sqlite")
            return ("examples.chat", name, "--port", port, "--storage", storage,
                    "--pace", "20")  # fmt: skip

        with running(*join("alice")) as alice:
            alice.until("alice is in the channel")
            with running(*join("bob")) as first:
                first.until("bob is in the channel")
                alice.say("The kettle is on.")
                first.until(expected[0])
                alice.say(f"/file {file}")
                alice.until("[sending-message")
                alice.until("11/11")
                first.kill()
            alice.say("Tea is ready.")
            with running(*join("bob")) as second:
                second.until(expected[2])
                alice.until("[message-acknowledged")
                heard = [
                    line
                    for line in [*first.lines, *second.lines]
                    if line.startswith("alice: ")
                ]
            # The last event before the kill may come again.
            assert list(dict.fromkeys(heard)) == expected
