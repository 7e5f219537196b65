"""`ReliableChannel` of `@waku/sdk` on one simulated network with ours."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64decode, b64encode
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from sds_core.message_channel import Cause
from sds_core.reliable_channel import Arrived, Dispatch
from sds_core.simulation.reliable_network import ReliableNetwork
from sds_core.waku import WakuMessage
from sds_core.wire import FrameKind, decode

SDK = Path(__file__).with_name("sdk")
TURN_MS = 20
"""The two sides take turns; a message needs at least so long."""

_NONE: dict[str, Any] = {}


class Heard(NamedTuple):
    """An event of a js channel.

    Attributes:
        at_ms: When, Unix ms.
        by: Name of the participant.
        name: Name of the event.
        message_id: Id of the message; empty for one that was received.
        payload: What was received.
    """

    at_ms: int
    by: str
    name: str
    message_id: str
    payload: bytes


def node_with_sdk() -> str:
    """Return the path of Node, with `@waku/sdk` installed for the peer."""
    node, npm = shutil.which("node"), shutil.which("npm")
    assert node is not None
    assert npm is not None
    # npm writes this file last.
    if not (SDK / "node_modules" / ".package-lock.json").exists():
        subprocess.run([npm, "ci", "--silent", "--no-audit"], cwd=SDK, check=True)
    return node


class SdkHost(AbstractContextManager["SdkHost"]):
    """Participants in a Node process, and the network that they share with ours.

    Args:
        node: Path of the program.
        network: Has our participants.
        channel_id, content_topic, pubsub_topic: Of all participants.
        seed: Of the library's random numbers.

    Attributes:
        heard: Events of all js participants, in order.
    """

    def __init__(
        self,
        node: str,
        network: ReliableNetwork,
        channel_id: str,
        content_topic: str,
        pubsub_topic: str,
        seed: int = 1,
    ) -> None:
        self.heard: list[Heard] = []
        self._network = network
        self._content_topic = content_topic
        self._pubsub_topic = pubsub_topic
        self._stored = 0
        self._process = subprocess.Popen(
            [
                node,
                str(SDK / "peer.mjs"),
                str(network.now_ms),
                str(seed),
                channel_id,
                content_topic,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __exit__(self, *_: object) -> None:
        """Close the input of the process, which ends it."""
        with self._process:
            pass

    def enter(self, name: str, options: dict[str, Any] = _NONE) -> None:
        """Create and start a channel with these `ReliableChannelOptions`."""
        self._do("enter", name=name, options=options)
        self._network.attach(name, lambda arrived: self._receive(name, arrived))

    def connect(self, name: str) -> None:
        """Have the node of a participant say that it is connected to a store."""
        self._do("connect", name=name)

    def say(self, name: str, payload: bytes) -> str:
        """Have a participant send; returns the id of the message."""
        message_id: str = self._do("say", name=name, payload=_text(payload))
        return message_id

    def queries(self, name: str) -> int:
        """Return how often a participant queried the store."""
        number: int = self._do("queries", name=name)
        return number

    def run(self, duration_ms: int) -> None:
        """Advance the virtual time of both sides."""
        end_ms = self._network.now_ms + duration_ms
        while self._network.now_ms < end_ms:
            self._network.run(min(TURN_MS, end_ms - self._network.now_ms))
            self._tell_store()
            self._do("run")

    def names(self, by: str, message_id: str) -> list[str]:
        """Return the names of a message's events, in order."""
        return [
            one.name
            for one in self.heard
            if one.by == by and one.message_id == message_id
        ]

    def received(self, by: str) -> list[bytes]:
        """Return the payloads that a participant received, in order, with repeats."""
        return [
            one.payload
            for one in self.heard
            if one.by == by and one.name == "message-received"
        ]

    def _receive(self, name: str, arrived: Arrived) -> None:
        self._do("receive", name=name, message=_message(arrived.message))

    def _tell_store(self) -> None:
        for one in self._network.transmissions[self._stored :]:
            if one.dispatch.message_hash in self._network.store:
                self._do(
                    "store",
                    hash=_text(one.dispatch.message_hash),
                    message=_message(one.dispatch.message),
                )
        self._stored = len(self._network.transmissions)

    def _do(self, command: str, **rest: Any) -> Any:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        now_ms = self._network.now_ms
        line = json.dumps({"at_ms": now_ms, "command": command, **rest})
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        for one in answer["events"]:
            payload = b64decode(one.get("payload", ""))
            heard = Heard(now_ms, one["by"], one["name"], one.get("id", ""), payload)
            self.heard.append(heard)
        for one in answer["sent"]:
            self._transmit(one)
        return answer.get("result")

    def _transmit(self, sent: dict[str, Any]) -> None:
        message = WakuMessage(
            b64decode(sent["payload"]),
            self._content_topic,
            int(sent["timestamp"]),
            ephemeral=sent["ephemeral"],
        )
        kind = decode(message.payload).kind
        cause = Cause.SYNC if kind is FrameKind.SYNC else Cause.CONTENT
        message_hash = message.hash_on(self._pubsub_topic)
        dispatch = Dispatch(0, cause, message, message_hash)
        self._network.transmit(sent["from"], dispatch)


def _message(message: WakuMessage) -> dict[str, Any]:
    return {
        "payload": _text(message.payload),
        "timestamp": str(message.timestamp_ns),
        "ephemeral": message.ephemeral,
        "meta": _text(message.meta),
    }


def _text(value: bytes) -> str:
    return b64encode(value).decode()
