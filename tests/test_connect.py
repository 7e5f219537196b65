"""The page "Connect your nodes" does what it says, with a node of ours."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from sds_core.waku import WakuMessage
from sds_core.wire import encode
from tests.support.frames import FrameFactory
from tests.support.kafka import free_port
from tests.support.waiting import wait_for
from tests.support.waku_node import ConformanceNode, Endpoint

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PAGE = Path(__file__).parents[1] / "docs/connect.md"
SHARD = "/waku/2/rs/1/0"
CACHE = 1_000


def commands() -> list[list[str]]:
    """The shell blocks of the section "In four commands", one command each."""
    text = PAGE.read_text(encoding="utf-8")
    (section,) = re.findall(r"^## In four commands\n(.*?)^## ", text, re.M | re.S)
    return [
        shlex.split(block) for block in re.findall(r"```sh\n(.*?)```", section, re.S)
    ]


@contextmanager
def running(words: list[str], directory: Path, metrics_port: str) -> Iterator[Path]:
    """A command in the foreground of its own terminal, which gets Ctrl-C in the end."""
    log = directory / f"{words[1]}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "streaming.cli", *words[1:]],
            cwd=directory,
            env=os.environ
            | {"SDS_MONITOR_METRICS_PORT": metrics_port, "PYTHONPATH": os.getcwd()},
            stdout=file,
            stderr=file,
        )
    try:
        yield log
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def answer(url: str) -> Any:
    """The JSON that is served there; None if nothing is yet."""
    try:
        found = httpx.get(url)
    except httpx.TransportError:
        return None
    return found.json() if found.status_code == 200 else None


def test_the_page_leads_from_a_node_to_a_verdict(tmp_path: Path) -> None:
    """Its commands as they stand, in an empty directory.

    Only the ports are replaced, wherever they stand, by free ones: of the node, of
    Kafka and of the page; the mirror's metrics get one by their variable.
    """
    kafka_port, page_port = str(free_port()), str(free_port())
    town = FrameFactory("town")
    with ExitStack() as terminals, ConformanceNode(relay_capacity=CACHE) as node:
        ports = {
            "8645": node.url.rpartition(":")[2],
            "9092": kafka_port,
            "9108": page_port,
        }
        broker, mirror, monitor, ask = (
            [
                re.sub("|".join(ports), lambda found: ports[found[0]], word)
                for word in one
            ]
            for one in commands()
        )

        def start(words: list[str], metrics_port: str = "0") -> Path:
            return terminals.enter_context(running(words, tmp_path, metrics_port))

        log = start(broker)
        wait_for(lambda: kafka_port in log.read_text())
        start(mirror)
        wait_for(lambda: sum(one.endpoint is Endpoint.RELAY for one in node.calls) > 1)
        history: list[str] = []
        for number in range(20):
            sender = ("alice", "bob")[number % 2]
            frame = town.content(f"m{number}", sender, number, history=history[-5:])
            sent = WakuMessage(encode(frame), "/app/1/town/proto", time.time_ns())
            node.offer(sent, pubsub_topic=SHARD)
            history.append(f"m{number}")
        log = tmp_path / "mirror.log"
        wait_for(lambda: node.relay_backlog == 0)
        start(monitor, page_port)

        def verdict() -> Any:
            found = answer(ask[1])
            channels = found["channels"] if found else []
            return channels and channels[0]["messages"] == 20 and channels[0]

        channel = wait_for(verdict)
    assert ask[0] == "curl"
    assert channel["id"] == "town"
    assert channel["verdict"] in ("warming_up", "ok")
    assert channel["acknowledged"]["definite"] == 19
    assert "20 frames written, 0 still to write" in log.read_text()
