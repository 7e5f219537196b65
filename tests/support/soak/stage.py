"""A simulated network around a real node, and its expected figures."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectors.kafka.settings import KafkaSettings
from sds_core.observer.record import RawRecord
from sds_core.simulation.log import (
    META,
    PUBSUB_TOPIC,
    Entry,
    Heartbeat,
    Sighting,
    Transmission,
    content_topic,
)
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.simulator import simulate
from sds_core.simulation.truth import Truth
from sds_core.waku import WakuMessage
from tests.support.kafka import records
from tests.support.waku_node import ConformanceNode


def waku_message(sent: Transmission) -> WakuMessage:
    """Return the Waku message around a simulated frame."""
    return WakuMessage(
        sent.value,
        content_topic(sent.channel_id),
        sent.waku_timestamp_ns,
        meta=META,
        ephemeral=sent.frame.lamport is None,
    )


@dataclass
class Stage:
    """Participants send in real time, and a node gets what the simulated tap sees.

    Attributes:
        scenario: What happens; it has one tap, whose sightings the node gets.
        seed: Of the simulation.
        node: The node.
        entries: What has happened, but for the tap's doings.
        ending: Set to end before the scenario does.
    """

    scenario: Scenario
    seed: int
    node: ConformanceNode
    entries: list[Entry] = field(default_factory=list)
    ending: threading.Event = field(default_factory=threading.Event)

    def play(self) -> None:
        """Run as long as the scenario lasts, unless it is ended before."""
        start_ms = time.time_ns() // 1_000_000_000 * 1_000
        for entry in simulate(self.scenario, self.seed, start_ms):
            match entry:
                case Sighting():
                    ahead_s = (entry.at_ms * 1_000_000 - time.time_ns()) / 1e9
                    if self.ending.wait(max(0.0, ahead_s)):
                        return
                    message = waku_message(entry.transmission)
                    self.node.offer(message, pubsub_topic=PUBSUB_TOPIC)
                case Heartbeat():
                    pass
                case _:
                    self.entries.append(entry)

    def begin(self) -> threading.Thread:
        """Run in the background."""
        thread = threading.Thread(target=self.play, name="stage", daemon=True)
        thread.start()
        return thread

    def truth(self, records: Iterable[TapRecord]) -> dict[str, Any]:
        """Return what a correct monitor finds if the tap saw exactly these records."""
        sent = {
            one.waku_hash: one for one in self.entries if isinstance(one, Transmission)
        }
        seen = [record.entry(sent) for record in records]
        truth = Truth(self.scenario.name, self.seed)
        # Of one time, what happened comes before what was seen of it.
        for entry in sorted([*self.entries, *seen], key=lambda entry: entry.at_ms):
            truth.add(entry)
        return truth.document()


@dataclass(frozen=True)
class TapRecord:
    """A record of the topic, as far as the truth needs it.

    Attributes:
        at_ms: Record time, Unix ms.
        observer, seq: Of the tap.
        waku_hash: `0x` and 64 hex digits; empty for a heartbeat.
        source: How it came; empty for a heartbeat.
    """

    at_ms: int
    observer: str
    seq: int
    waku_hash: str
    source: str

    @classmethod
    def of(cls, record: RawRecord) -> TapRecord:
        """Parse a record that the mirror wrote."""
        headers = {name: value or b"" for name, value in record.headers}
        return cls(
            record.timestamp_ms,
            headers["observer"].decode(),
            int(headers["seq"]),
            headers.get("waku-hash", b"").decode(),
            headers.get("source", b"").decode(),
        )

    @property
    def is_frame(self) -> bool:
        """Whether it is a frame, not a heartbeat."""
        return bool(self.waku_hash)

    @property
    def message_hash(self) -> bytes:
        """The Waku hash, 32 bytes; of a heartbeat none."""
        return bytes.fromhex(self.waku_hash[2:])

    def entry(self, sent: Mapping[str, Transmission]) -> Entry:
        """Return the same as an entry of a simulated log."""
        if not self.is_frame:
            return Heartbeat(self.at_ms, self.observer, self.seq)
        return Sighting(self.at_ms, self.observer, self.seq, sent[self.waku_hash])


def tap_records(kafka: KafkaSettings) -> list[TapRecord]:
    """All records of a topic by time: in each partition in order, duplicates left out.

    A heartbeat counts once, though each partition has it.
    """
    found: dict[TapRecord, None] = {}
    for record in records(kafka):
        found.setdefault(TapRecord.of(record))
    return sorted(found, key=lambda record: record.at_ms)


def missing_numbers(records: Iterable[TapRecord]) -> list[int]:
    """Return the numbers up to the last one that no frame has."""
    numbers = {record.seq for record in records if record.is_frame}
    return sorted(set(range(1, max(numbers, default=0) + 1)) - numbers)
