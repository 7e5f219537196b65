"""The monitor hears from an audit that its mirror lacks messages."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from connectors.web.server import WebServer
from connectors.web.side_apps import create_audit_app
from sds_core.audit.figures import AuditFigures
from sds_core.audit.result import AuditedMessage, AuditResult
from sds_core.wire import encode
from tests.support.frames import FrameFactory
from tests.support.kafka import TopicMaker, free_port
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def test_a_channel_is_blind_while_its_mirror_lacks_a_message(
    kafka_topic: TopicMaker, tmp_path: Path
) -> None:
    """The other one is not; nor is it once the audit finds nothing missing."""
    topic = kafka_topic()
    now_ms = time.time_ns() // 1_000_000
    # Channels have no verdict before they are 30 s old.
    for number, time_ms in enumerate((now_ms - 45_000, now_ms - 1_000)):
        for name in ("town", "village"):
            frame = FrameFactory(name).content(f"m{number}", "ana")
            topic.write(encode(frame), time_ms=time_ms, key=name.encode())
    missing = AuditedMessage(now_ms * 1_000_000, bytes(32), channel="town")
    figures = AuditFigures()
    figures.ended(AuditResult("store", 1, 2, 1, 2, [missing], []), now_ms)
    port = free_port()
    with WebServer(create_audit_app(figures), "127.0.0.1", 0) as audit:
        command = [
            *(sys.executable, "-m", "streaming.cli", "run", "--heartbeat"),
            *("--bootstrap", topic.settings.bootstrap),
            *("--topic", topic.settings.topic, "--checkpoint", str(tmp_path / "state")),
            *("--metrics-port", str(port), "--audit", audit.url),
        ]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:

                def verdicts() -> dict[str, tuple[str, str]]:
                    try:
                        answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/channels")
                    except httpx.TransportError:
                        return {}
                    return {
                        one["id"]: (one["verdict"], one["reason"])
                        for one in answer.json().get("channels", [])
                    }

                blind = ("blind", "audit_incomplete")
                wait_for(lambda: verdicts().get("town") == blind, 90)
                assert verdicts()["village"][0] in {"ok", "quiet", "degraded"}
                figures.ended(AuditResult("store", 1, 2, 2, 2, [], []), now_ms)
                wait_for(lambda: verdicts()["town"] == verdicts()["village"], 40)
            finally:
                process.terminate()
                process.wait(60)
