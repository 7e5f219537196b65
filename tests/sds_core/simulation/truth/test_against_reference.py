"""Truth by identity and a reference by bytes agree on random traffic.

What the reference knows it reads from the frames and their filters, after them in the
topic's order; the truth is told who received what.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from sds_core.message_channel.events import Cause
from sds_core.message_channel.profile import Profile
from sds_core.simulation.log import Sighting
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.simulator import simulate
from sds_core.simulation.truth import Truth
from sds_core.wire import Dialect, Frame, FrameKind
from tests.support.frames import FrameFactory, Record
from tests.support.reference import Reference
from tests.support.simulation.simulated import START_MS, Simulated

pytestmark = pytest.mark.slow

DURATION_MS = 900_000
MEAN_STEP_MS = 4_000
SEEDS = range(40)
SCENARIO = Scenario.from_mapping(
    {
        "name": "two-taps",
        "description": "Two dialects on a lossy network, two taps that lose as well.",
        "duration_s": 300,
        "settle_s": 200,
        "participants": 6,
        "channels": [
            {"name": "c", "count": 2, "traffic": {"mean_interval_s": 12.0}},
        ],
        "profiles": [
            {"base": "spec"},
            {"base": "js_sds"},
            {"base": "nim_sds"},
            {"overrides": {"bloom_rollover_ids": 20, "bloom_kept_ids": 10}},
        ],
        "network": {"loss": 0.2},
        "churn": {"absences": {"share": 0.4, "mean_present_s": 100, "mean_away_s": 20}},
        "taps": [
            # The reference knows of no heartbeats.
            {
                "name": "near",
                "loss": 0.4,
                "replica_share": 0.1,
                "heartbeat_interval_s": 10_000,
            },
            {
                "name": "far",
                "loss": 0.4,
                "clock_offset_ms": -3_000,
                "heartbeat_interval_s": 10_000,
            },
        ],
    }
)
PARTICIPANTS = ("ana", "ben", "cem", "dov")
ROLLING = "dov"
MOST_HELD, KEPT = 16, 2
"""Ids in dov's filter when it rolls over, and after that.

So many fewer that the next frame shows it, also to whom knows none of them.
"""


class Traffic:
    """Random traffic of one channel, told to both.

    Loss at the taps, sync frames that a library repairs, histories of few entries,
    requests for what is missing or not, retries, repairs, replicas of two taps, reused
    ids, a filter that rolls over, quiet ends.
    """

    def __init__(self, seed: int) -> None:
        self.simulated = Simulated()
        self.records: list[Record] = []
        self._random = random.Random(seed)
        self._frames = FrameFactory()
        rolling = Profile(bloom_rollover_ids=MOST_HELD, bloom_kept_ids=KEPT)
        self.simulated.begin_as(ROLLING, rolling)
        self._received: defaultdict[str, set[str]] = defaultdict(set)
        # What is in their filters, oldest first.
        self._held: defaultdict[str, list[str]] = defaultdict(list)
        self._known: list[tuple[str, str]] = []
        self._sent: list[tuple[Frame, str]] = []
        self._hash = 0
        at = 0
        while at < DURATION_MS:
            self._step(at)
            at += round(self._random.expovariate(1 / MEAN_STEP_MS))
        last = max(record.at for record in self.records)
        self.end = last + self._random.choice([0, 100_000, 400_000])
        self.simulated.heartbeat(at=self.end)

    def reference(self) -> dict[str, Any]:
        """The reference's figures."""
        return Reference(self.records, self.end).figures()

    def _step(self, at: int) -> None:
        chance = self._random.random()
        if chance < 0.35:
            self._speak(at, is_content=True)
        elif chance < 0.6:
            self._speak(at, is_content=False)
        elif chance < 0.61:
            who = self._random.choice(PARTICIPANTS)
            self._send(self._frames.ephemeral(who), who, at, Cause.EPHEMERAL)
        elif chance < 0.75 and self._sent:
            # Sometimes long after: what was taken for lost comes back.
            latest = self._random.choice([5, 20, 200])
            frame, who = self._random.choice(self._sent[-latest:])
            self._send(frame, who, at, self._random.choice([Cause.RETRY, Cause.REPAIR]))
        elif self._known:
            who = self._random.choice(PARTICIPANTS)
            message_id, sender = self._random.choice(self._known[-10:])
            if message_id not in self._received[who] and sender != who:
                self._receive(who, message_id)
                self.simulated.receive(who, message_id, at=at)

    def _speak(self, at: int, is_content: bool) -> None:
        who = self._random.choice((*PARTICIPANTS, ""))
        # nim-sds names and repairs sync frames that an application makes of messages.
        is_nim_sync = not is_content and who != ROLLING and self._random.random() < 0.1
        is_message = is_content or is_nim_sync
        message_id = f"id-{len(self._sent)}"
        if not is_message:
            message_id = f"sync-{len(self.records)}"
        elif self._known and self._random.random() < 0.03:
            message_id = self._random.choice(self._known)[0]
        dialect = self._random.choice([*[Dialect.SPEC] * 5, Dialect.NIM])
        if is_nim_sync:
            dialect = Dialect.NIM
        known = self._random.sample(self._known[-8:], min(len(self._known), 3))
        asked = self._random.sample(self._known[-8:], min(len(self._known), 1))
        history = [
            entry if self._random.random() < 0.7 else entry[0] for entry in known
        ]
        requests = asked if self._random.random() < 0.2 else []
        lamport = at + self._random.randrange(20_000)
        if who == ROLLING:
            # Its filters are compared with each other, in the order of composing.
            dialect, lamport = Dialect.SPEC, at
        frame = self._frames.content(
            message_id,
            who,
            lamport,
            text=b"text" if is_content else b"",
            holds=self._held[who],
            history=history,
            requests=requests,
            dialect=dialect,
        )
        if is_message:
            self._known.append((message_id, who))
            self._receive(who, message_id)
            self._sent.append((frame, who))
        self._send(frame, who, at, Cause.CONTENT if is_message else Cause.SYNC)

    def _receive(self, who: str, message_id: str) -> None:
        if message_id in self._received[who]:
            return
        self._received[who].add(message_id)
        held = self._held[who]
        held.append(message_id)
        if who == ROLLING and len(held) > MOST_HELD:
            del held[:-KEPT]

    def _send(self, frame: Frame, by: str, at: int, cause: Cause) -> None:
        """Each of two taps sees it, or not, after a while."""
        sent = self.simulated.transmit(frame, by, at, cause, seen=False)
        self._hash += 1
        for tap in ("near", "far"):
            if self._random.random() < 0.4:
                seen = at + self._random.randrange(3_000)
                self.simulated.sight(sent, seen, tap)
                self.records.append(Record(seen, frame, waku_hash=self._hash))


@pytest.mark.parametrize("seed", SEEDS)
def test_truth_agrees_with_the_reference(seed: int) -> None:
    """Every figure, by the name that the reference gives it."""
    traffic = Traffic(seed)
    found = traffic.reference()
    truth = comparable(traffic.simulated.figures())
    assert truth == comparable_of_reference(found, truth)


def test_traffic_has_every_outcome() -> None:
    """Otherwise the agreement would say little."""
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        counts.update(comparable(Traffic(seed).simulated.figures()))
    assert {name for name, count in counts.items() if not count} == set()


@pytest.mark.parametrize("seed", range(3))
def test_truth_of_simulated_participants_agrees_with_the_reference(seed: int) -> None:
    """Their filters are real: what they hold is what the truth says they received."""
    entries = list(simulate(SCENARIO, seed, START_MS))
    truth = Truth(SCENARIO.name, seed)
    records = defaultdict(list)
    for entry in entries:
        truth.add(entry)
        if isinstance(entry, Sighting):
            sent = entry.transmission
            at = entry.at_ms - START_MS
            records[sent.channel_id].append(
                Record(at, sent.frame, waku_hash=sent.number + 1)
            )
    document = truth.document()
    end = document["window"]["last_event"] - START_MS
    assert document["channels"].keys() == records.keys()
    for channel_id, figures in document["channels"].items():
        found = Reference(records[channel_id], end).figures()
        numbers = comparable(figures)
        assert numbers == comparable_of_reference(found, numbers)
    assert document["totals"]["gaps"]["opened"] > 0
    assert document["totals"]["repair"]["answered"] > 0
    assert document["totals"]["deliveries"]["recovered"] > 0


def comparable(figures: dict[str, Any]) -> dict[str, int]:
    """Single numbers by the names that the reference gives them."""
    numbers = {name: value for name, value in figures.items() if isinstance(value, int)}
    for group in (
        "frames",
        "acknowledged",
        "rebroadcasts",
        "deliveries",
        "gaps",
        "repair",
        "bytes",
        "repair_bytes",
    ):
        for name, value in figures[group].items():
            numbers[f"{group}_{name}"] = value
    # Said twice: the sum of two others, and what stands among the bytes.
    del numbers["repair_responses"]
    del numbers["repair_bytes_request"]
    numbers["definite_latency"] = sum(ms for _, ms in figures["ack_latencies"])
    numbers["probable_latency"] = figures["ack_latency_ms"]["probable"]["sum"]
    numbers["delivery_recovery"] = figures["delivery_recovery_ms"]["sum"]
    numbers["gap_duration"] = figures["gap_ms"]["sum"]
    numbers["repair_response"] = figures["repair_response_ms"]["sum"]
    return numbers


def comparable_of_reference(
    found: dict[str, Any], names: Iterable[str]
) -> dict[str, int]:
    """The same numbers as the reference has them."""
    numbers = {name: found[name] for name in names if name in found}
    for name in (
        "definite_latency",
        "probable_latency",
        "delivery_recovery",
        "gap_duration",
        "repair_response",
    ):
        numbers[name] = found[name][1]
    for kind in FrameKind:
        numbers[f"frames_{kind.value}"] = sum(
            count
            for name, count in found["frames"].items()
            if name.startswith(kind.value)
        )
    return numbers
