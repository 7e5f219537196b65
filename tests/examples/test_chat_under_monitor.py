"""The monitor reports truly what the processes of the chat did."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.files.importing import survey_file
from sds_core.reliable_channel import SegmentationOptions
from sds_core.simulation.comparison import compare
from tests.support.chat import Running, running
from tests.support.cli.command import sds_monitor
from tests.support.identities import assert_identities

PAYLOAD_BYTES = 1024 * 1024
SEGMENTS = SegmentationOptions().data_count(PAYLOAD_BYTES)
SHORT = 4
"""Messages of one chunk that the participants say."""

OF_FILTERS = (
    "ack_latency_ms.probable",
    "acknowledged.probable",
    "deliveries.first_pass",
    "deliveries.recovered",
    "delivery_recovery_ms",
    "repair.requests_for_received",
)
"""Their truth is when a process took a message in; the network knows when it wrote it
to the process, which is moments earlier, and never is if the process was killed."""

EXPECTED = {
    "messages": SEGMENTS + SHORT,
    "acknowledged.definite": SEGMENTS + SHORT,
    "unacknowledged": 0,
    "rebroadcasts.retry": 0,
    "gaps.open": 0,
    "gaps.lost": 0,
    "deliveries.lost": 0,
    "undecodable": {},
    "segmented.begun": 1 + SHORT,
    "segmented.complete": 1 + SHORT,
    "segmented.incomplete": 0,
    "segmented.open": 0,
    "segments.data": SEGMENTS + SHORT,
    "segments.parity": 0,
    "segments.disagreeing": 0,
}
"""What the test itself knows, by names of the report: everything arrived in the end,
and only SDS-R repaired. A message of one chunk is a segment too."""


def figure(report: Mapping[str, Any], name: str) -> Any:
    """Return one of the totals of a report or a truth."""
    value: Any = report["totals"]
    for part in name.split("."):
        value = value[part]
    return value


def chat(directory: Path) -> Path:
    """Hold a conversation with a file and a kill; returns the network's record."""
    file, record = directory / "large", directory / "chat.jsonl"
    file.write_bytes(os.urandom(PAYLOAD_BYTES))
    with running(
        "examples.chat.network", "--port", "0", "--loss", "0.1", "--record", str(record)
    ) as network:
        port = network.until("on port").split()[3].rstrip(",")

        def join(name: str) -> tuple[str, ...]:
            storage = str(directory / f"{name}.sqlite")
            options = ("--pace", "20", "--retries", "0", "--retrieval", "sds-r")
            return ("examples.chat", name, "--port", port, "--storage", storage,
                    *options)  # fmt: skip

        with running(*join("alice")) as alice:
            alice.until("alice is in the channel")
            with running(*join("bob")) as first:
                first.until("bob is in the channel")
                first.say("Is there tea?")
                alice.until("bob: Is there tea?")
                alice.say("The kettle is on.")
                first.until("alice: The kettle is on.")
                alice.say(f"/file {file}")
                alice.until("[message-sent")
                alice.until(f" {SEGMENTS}/{SEGMENTS}")
                first.kill()
            alice.say("Tea is ready.")
            with running(*join("bob")) as second:
                second.until("alice: Tea is ready.")
                second.say("Thanks.")
                alice.until("bob: Thanks.")
                until_acknowledged(SEGMENTS + 2, alice)
                until_acknowledged(2, first, second)
        assert network.end() == 0
    return record


def until_acknowledged(chunks: int, *processes: Running) -> None:
    """Wait until so many chunks that a participant sent are acknowledged.

    Args:
        chunks: Number of chunks; each has an event of its own.
        processes: Those of the participant; an event may come again after a kill.
    """
    processes[-1].wait(
        lambda: (
            len(
                {
                    line
                    for process in processes
                    for line in process.lines
                    if "[message-acknowledged" in line
                }
            )
            == chunks
        )
    )


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_monitor_reports_the_chat_as_the_network_knows_it(
    kafka_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """Messages, repairs and acknowledgements, over losses and a kill."""
    record = chat(tmp_path)
    kafka = ("--bootstrap", kafka_broker.bootstrap, "--topic", "chat")
    imported = sds_monitor("import", *kafka, str(record))
    assert imported.returncode == 0, imported.stderr
    survey = survey_file(record)
    file = tmp_path / "report.json"
    window = ("--from", str(survey.first_ms), "--to", str(survey.last_ms))
    replayed = sds_monitor("replay", *kafka, *window, "--report", str(file))
    assert replayed.returncode == 0, replayed.stderr

    report = json.loads(file.read_text())
    truth = json.loads(record.with_suffix(".truth.json").read_text())
    assert_identities(report)
    assert {name: figure(report, name) for name in EXPECTED} == EXPECTED
    assert figure(report, "rebroadcasts.repair") > 0
    compared = [
        one for one in compare(truth, report) if not one.figure.startswith(OF_FILTERS)
    ]
    assert {"repair.answered", "messages"} < {one.figure for one in compared}
    assert [one for one in compared if not one.same] == []
    # A busy process asks for what lies unread in its socket.
    for_received = truth["totals"]["repair"]["requests_for_received"]
    assert figure(report, "repair.requests_for_received") <= for_received
