"""Real `@waku/sds` participants in a Node process, synchronised in virtual time."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import inf
from pathlib import Path
from typing import Any

from sds_core.message_channel import Cause
from tests.support.interop.host import Note, Outcome, Said, What

PEER = Path(__file__).with_name("peer.mjs")
GENERATOR = Path(__file__).parents[3] / "tools" / "recording"


def node_with_library() -> str:
    """Return the path of Node, with `@waku/sds` installed for the peer."""
    node, npm = shutil.which("node"), shutil.which("npm")
    assert node is not None
    assert npm is not None
    # npm writes this file last.
    if not (GENERATOR / "node_modules" / ".package-lock.json").exists():
        subprocess.run([npm, "ci", "--silent", "--no-audit"], cwd=GENERATOR, check=True)
    return node


class NodeDied(Exception):
    """The Node process ended; its output is on standard error."""


class NodeHost(AbstractContextManager["NodeHost"]):
    """A host of `@waku/sds` participants, driven as the Waku SDK drives them.

    Args:
        node: path of the program.
        channel_id: of all participants.
        start_ms: the virtual clock's start, Unix ms.
        seed: of the library's and the timers' random numbers.

    Attributes:
        next_ms: when a timer is due next, Unix ms.
    """

    def __init__(self, node: str, channel_id: str, start_ms: int, seed: int) -> None:
        self.next_ms: float = inf
        self._now_ms = start_ms
        self._process = subprocess.Popen(
            [node, str(PEER), str(start_ms), str(seed), channel_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __exit__(self, *_: object) -> None:
        """Close the input of the process, which ends it."""
        with self._process:
            pass

    def enter(self, at_ms: int, name: str, **options: Any) -> Outcome:
        """Open a participant with the given `MessageChannelOptions`."""
        return self._do(at_ms, "enter", name=name, options=options)[0]

    def run_until(self, at_ms: int) -> Outcome:
        """Run all actions planned up to and including this time."""
        return self._do(at_ms, "run")[0]

    def say(self, at_ms: int, name: str, text: str) -> Outcome:
        """Have a participant send a content message, again until acknowledged."""
        return self._do(at_ms, "say", name=name, text=text)[0]

    def say_ephemeral(self, at_ms: int, name: str, text: str) -> Outcome:
        """Have a participant send an ephemeral message."""
        return self._do(at_ms, "sayEphemeral", name=name, text=text)[0]

    def receive(self, at_ms: int, name: str, value: bytes, hint: bytes) -> Outcome:
        """Hand a frame to a participant, which processes it within a second."""
        frame = {"value": _text(value), "hint": _text(hint)}
        return self._do(at_ms, "receive", name=name, **frame)[0]

    def leave(self, at_ms: int, name: str) -> None:
        """Close a participant's application for good."""
        self._do(at_ms, "leave", name=name)

    def log(self, name: str) -> list[str]:
        """Return the ids of a participant's local history, in its order."""
        ids: list[str] = self._do(self._now_ms, "log", name=name)[1]
        return ids

    def recode(self, values: Sequence[bytes]) -> list[bytes]:
        """Have the library decode frames and encode them again."""
        texts = [_text(value) for value in values]
        recoded = self._do(self._now_ms, "recode", values=texts)[1]
        return [b64decode(text) for text in recoded]

    def _do(self, at_ms: int, command: str, **rest: Any) -> tuple[Outcome, Any]:
        self._now_ms = at_ms
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = json.dumps({"at_ms": at_ms, "command": command, **rest})
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise NodeDied from None
        line = process.stdout.readline()
        if not line:
            raise NodeDied
        answer = json.loads(line)
        self.next_ms = answer.get("next_ms", inf)
        said = [
            Said(
                one["from"],
                Cause(one["cause"]),
                b64decode(one["value"]),
                b64decode(one["hint"]),
            )
            for one in answer["broadcasts"]
        ]
        notes = [
            Note(one["by"], What(one["what"]), one["id"], one.get("due_ms"))
            for one in answer["notes"]
        ]
        return Outcome(said, notes), answer.get("result")


def _text(value: bytes) -> str:
    return b64encode(value).decode()
