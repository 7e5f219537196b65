"""The record of everything that the network carries, for the monitor."""

from __future__ import annotations

import json
import time
from pathlib import Path

from connectors.files.record_lines import format_line
from connectors.kafka.producer import TopicRecord
from examples.chat.tap import WitnessTap
from sds_core.observer.record import RawRecord
from sds_core.waku import WakuMessage

OBSERVER = "chat-network"
_NS_PER_MS = 1_000_000


class Record:
    """Writes a file of records (docs/files.md), and in the end the truth beside it.

    Args:
        file: The file; the truth gets its name with the ending `.truth.json`.
    """

    def __init__(self, file: Path) -> None:
        self._tap = WitnessTap(OBSERVER, "chat")
        self._truth_file = file.with_suffix(".truth.json")
        self._lines = file.open("wb")
        self._offset = 0

    def sent(self, by: str, message: WakuMessage, pubsub_topic: str) -> None:
        """Record a message of a participant."""
        self._write(self._tap.sent(_now_ms(), by, message, pubsub_topic))

    def reached(self, participant: str, message: WakuMessage) -> None:
        """Note that a message reached a participant."""
        self._tap.reached(_now_ms(), participant, message)

    def heartbeat(self) -> None:
        """Record that nothing is missing up to now."""
        self._write(self._tap.heartbeat(_now_ms()))

    def close(self) -> None:
        """End with a heartbeat, and write the truth."""
        self.heartbeat()
        self._lines.close()
        self._truth_file.write_text(json.dumps(self._tap.truth()))

    def _write(self, record: TopicRecord) -> None:
        line = RawRecord(
            record.partition,
            self._offset,
            record.timestamp_ms,
            record.key,
            record.value,
            record.headers,
        )
        self._lines.write(format_line(line))
        self._lines.flush()
        self._offset += 1


def _now_ms() -> int:
    return time.time_ns() // _NS_PER_MS
