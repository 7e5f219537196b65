"""Measures the costs, deliveries and acknowledgements of a simulated channel."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from sds_core.message_channel.events import Cause, Evidence
from sds_core.planning.channel import DAY_S, ChannelPlan
from sds_core.planning.closed_forms import false_acknowledgement_rate
from sds_core.simulation.log import Arrival, Entry, Presence, Transmission
from sds_core.simulation.truth import Truth
from sds_core.simulation.truth.acknowledgements import definite_for
from sds_core.simulation.truth.conclusions import Conclusions
from sds_core.simulation.truth.deliveries import Outcome as Judged
from sds_core.simulation.truth.messages import Story
from sds_core.wire import PartSizes, part_sizes

EPOCH_S: Final = 600.0
SEGMENT_SPACING_MS: Final = 20
"""Time between the segments of a payload, ms."""
PART_FIGURES: Final = tuple(
    f"{part}_bytes_per_day"
    for part in ("content", "history", "filter", "repair", "other")
)
"""For each part in `PartSizes`, in the same order: the figure for its bytes per day."""
_REPAIR: Final = PART_FIGURES.index("repair_bytes_per_day")
_LEAST_GRACE_MS = 10_000.0


class Outcome(NamedTuple):
    """Figures of a simulation.

    If a figure has no event to measure in the simulation, it is NaN. docs/planning.md
    ("Figures") defines the figures. Shares are in [0, 1]. A message is one payload. A
    segmented payload is received when enough of its segments have arrived. A delivery
    is a pair of a message and a participant other than the message's sender; the
    participant may be offline. The prefix ``monitor_`` marks figures that a monitor
    would derive from the frames (docs/figures.md, 4 and 5).
    """

    messages: float
    frames: float
    seconds: float
    bytes_per_day: float
    content_bytes_per_day: float
    history_bytes_per_day: float
    filter_bytes_per_day: float
    repair_bytes_per_day: float
    other_bytes_per_day: float
    sync_bytes_per_day: float
    retransmission_bytes_per_day: float
    bytes_per_message: float
    frames_per_day: float
    first_pass: float
    eventual: float
    acknowledged: float
    ack_mean_s: float
    ack_p50_s: float
    ack_p95_s: float
    ack_p99_s: float
    recovery_mean_s: float
    recovery_p50_s: float
    recovery_p95_s: float
    recovery_p99_s: float
    repair_overhead: float
    exposed: float
    false_acknowledgements: float
    false_acknowledgements_simulated: float
    epoch_messages: float
    epoch_used: float
    first_peer_in_time: float
    misses_found_in_time: float
    consistent_in_time: float
    monitor_first_pass: float
    monitor_eventual: float
    monitor_ack_mean_s: float
    monitor_ack_p50_s: float
    monitor_ack_p95_s: float
    monitor_ack_p99_s: float
    monitor_recovery_mean_s: float
    monitor_recovery_p50_s: float
    monitor_recovery_p95_s: float
    monitor_recovery_p99_s: float


class Measurement:
    """Computes the figures of one simulation of one channel.

    Only messages that are sent in [from_ms, until_ms), Unix ms, are measured.
    """

    def __init__(
        self, plan: ChannelPlan, channel_id: str, from_ms: int, until_ms: int
    ) -> None:
        self._plan, self._channel_id = plan, channel_id
        self._from_ms, self._until_ms = from_ms, until_ms
        threshold = plan.participant().possible_acks_threshold
        self._needed = math.inf if threshold is None else threshold
        self._truth = Truth("plan", seed=0)
        # A dictionary, unlike a set, has the same order in every process. Therefore,
        # all processes sum figures in the same order, with the same rounding errors.
        self._members: dict[str, None] = {}
        self._frames = 0
        self._ids: defaultdict[str, list[str]] = defaultdict(list)
        self._measured: dict[str, None] = {}
        self._message_bytes = np.zeros(len(PartSizes._fields))
        self._sync_bytes = np.zeros(len(PartSizes._fields))
        self._again_bytes = 0
        self._counts: Counter[Cause] = Counter()
        self._epochs: Counter[tuple[str, int]] = Counter()
        # By sender, its messages that no other participant has received yet. For each
        # message, the filters that its sender has received since it sent the message. A
        # filter is identified by the number or by the sender of its frame.
        self._alone: defaultdict[str, dict[str, set[str | int]]] = defaultdict(dict)
        self._exposed: set[str] = set()

    def add(self, entry: Entry) -> None:
        """Process the next entry of the simulation's log."""
        self._truth.add(entry)
        match entry:
            case Arrival():
                self._arrived(entry)
            case Transmission():
                self._transmitted(entry)
            case Presence():
                self._members[entry.participant] = None

    def _transmitted(self, sent: Transmission) -> None:
        self._frames += 1
        message_id, cause = sent.frame.message_id, sent.cause
        is_in_time = self._from_ms <= sent.at_ms < self._until_ms
        if is_in_time:
            epoch = int((sent.at_ms - self._from_ms) / (EPOCH_S * 1_000))
            self._epochs[sent.by, epoch] += 1
            if cause is Cause.CONTENT:
                self._measured[message_id] = None
                self._ids[sent.by].append(message_id)
                self._alone[sent.by][message_id] = set()
        sizes = part_sizes(sent.frame.dialect, sent.value)
        if cause is Cause.SYNC and is_in_time:
            self._sync_bytes += sizes
        elif message_id in self._measured:
            self._message_bytes += sizes
            if cause is not Cause.CONTENT:
                self._again_bytes += len(sent.value)
        else:
            return
        self._counts[cause] += 1

    def _arrived(self, arrival: Arrival) -> None:
        sent, alone = arrival.transmission, self._alone.get(arrival.participant)
        stories = self._truth.stories(self._channel_id)
        if not alone or self._is_known(arrival, stories):
            return
        # If fewer other participants exist than filters are needed, several filters of
        # the same participant count towards an acknowledgement (`Outgoing.filters`).
        has_few_others = len(self._members) - 1 < self._needed
        for message_id in list(alone):
            story = stories[message_id]
            if story.received or story.acknowledged is not None:
                del alone[message_id]
            else:
                alone[message_id].add(sent.number if has_few_others else sent.by)
                if len(alone[message_id]) >= self._needed:
                    self._exposed.add(message_id)

    def _is_known(self, arrival: Arrival, stories: Mapping[str, Story]) -> bool:
        who, frame = arrival.participant, arrival.transmission.frame
        if arrival.transmission.cause is Cause.SYNC:
            return False
        return frame.sender_id == who or who in stories[frame.message_id].received

    def outcome(self, target_s: float) -> Outcome:
        """Return the figures of the simulation, after its last entry was added.

        For `target_s`, see `experiment.run`.
        """
        plan = self._plan
        data, parity = plan.segments()
        segments = data + parity
        seconds = (self._until_ms - self._from_ms) / 1_000
        sent = self._counts[Cause.CONTENT]
        if not sent:
            nothing = Outcome(**dict.fromkeys(Outcome._fields, math.nan))
            return nothing._replace(messages=0.0, frames=float(self._frames))
        a_day = plan.messages_per_day * segments
        synced = self._counts[Cause.SYNC] * DAY_S / seconds
        again = a_day * self._again_bytes / sent
        syncs = self._sync_bytes * DAY_S / seconds
        parts = [float(x) for x in a_day * self._message_bytes / sent + syncs]
        total = sum(parts)
        epoch_messages = self._epoch_messages(seconds)
        deliveries = self._deliveries(data, segments, target_s)
        exposed = len(self._exposed) / sent
        frames = self._counts.total() - self._counts[Cause.SYNC]
        return Outcome(
            messages=float(sent // segments),
            frames=float(self._frames),
            seconds=seconds,
            bytes_per_day=total,
            **dict(zip(PART_FIGURES, parts, strict=True)),
            sync_bytes_per_day=float(syncs.sum()),
            retransmission_bytes_per_day=again,
            bytes_per_message=total / plan.messages_per_day,
            frames_per_day=a_day * frames / sent + synced,
            repair_overhead=(again + parts[_REPAIR]) / total,
            exposed=exposed,
            false_acknowledgements=exposed * false_acknowledgement_rate(plan),
            epoch_messages=epoch_messages,
            epoch_used=epoch_messages / plan.epoch_messages,
            **deliveries,
            **self._monitored(),
        )

    def _epoch_messages(self, seconds: float) -> float:
        epochs = int(seconds // EPOCH_S)
        if not epochs:
            # The measured time is shorter than an epoch. If its maximum were scaled to
            # a whole epoch, the result would be far too high.
            return math.nan
        whole = [count for (_, at), count in self._epochs.items() if at < epochs]
        return float(max(whole, default=0))

    def _deliveries(
        self, data: int, segments: int, target_s: float
    ) -> dict[str, float]:
        stories = self._truth.stories(self._channel_id)
        grace_ms = max(_LEAST_GRACE_MS, 10 * self._plan.delay_ms)
        acks_s, recoveries_s, found = [], [], []
        pairs = first = received = messages = in_time = consistent = 0
        for sender, ids in self._ids.items():
            others = [member for member in self._members if member != sender]
            for payload in _payloads([stories[one] for one in ids], segments):
                sent_ms = payload[0].sendings[0].at_ms
                messages += 1
                pairs += len(others)
                if all(story.acknowledged for story in payload):
                    ack_ms = max(s.acknowledged[0] for s in payload if s.acknowledged)
                    acks_s.append((ack_ms - sent_ms) / 1_000)
                taken_s = []
                for other in others:
                    at_once_ms = _complete_ms(payload, other, data, grace_ms)
                    at_ms = _complete_ms(payload, other, data, math.inf)
                    taken_s.append((at_ms - sent_ms) / 1_000)
                    first += at_once_ms < math.inf
                    if at_once_ms == math.inf:
                        known_ms = min(s.missing.get(other, math.inf) for s in payload)
                        known_s = (min(known_ms, at_ms) - sent_ms) / 1_000
                        found.append(known_s <= 3 * target_s)
                        if at_ms < math.inf:
                            recoveries_s.append(taken_s[-1])
                received += sum(taken < math.inf for taken in taken_s)
                in_time += min(taken_s) <= target_s
                consistent += max(taken_s) <= 6 * target_s
        false = sum(_is_false(stories[message_id]) for message_id in self._measured)
        return {
            "first_pass": ratio(first, pairs),
            "eventual": ratio(received, pairs),
            "acknowledged": ratio(len(acks_s), messages),
            **_summary("ack", acks_s),
            **_summary("recovery", recoveries_s),
            "false_acknowledgements_simulated": ratio(false, len(self._measured)),
            "first_peer_in_time": ratio(in_time, messages),
            "misses_found_in_time": ratio(sum(found), len(found)),
            "consistent_in_time": ratio(consistent, messages),
        }

    def _monitored(self) -> dict[str, float]:
        concluded: Conclusions = self._truth.concluded()[self._channel_id]
        counts: Counter[Judged] = Counter()
        recoveries_s = []
        for delivery in concluded.deliveries:
            if delivery.message.composition.message_id not in self._measured:
                continue
            counts[delivery.outcome] += 1
            lacking, having = delivery.lacking, delivery.having
            if delivery.outcome is Judged.RECOVERED and lacking and having:
                recoveries_s.append(max(0, having.at_ms - lacking.at_ms) / 1_000)
        acks_s = []
        seen = concluded.view.messages
        for message in (seen[name] for name in self._measured if name in seen):
            evidence = definite_for(message, concluded.view)
            if evidence is not None:
                acks_s.append(max(0, evidence.at_ms - message.at_ms) / 1_000)
        judged = counts.total() - counts[Judged.OPEN]
        return {
            "monitor_first_pass": ratio(counts[Judged.FIRST_PASS], judged),
            "monitor_eventual": ratio(judged - counts[Judged.LOST], judged),
            **_summary("monitor_ack", acks_s),
            **_summary("monitor_recovery", recoveries_s),
        }


def _payloads(stories: Sequence[Story], segments: int) -> Iterator[Sequence[Story]]:
    """Yield the segments of each payload of a sender.

    `stories` has the sender's messages in the order of their sending. A payload without
    all its segments is omitted: the measured time can begin or end between segments,
    and a sender can leave between them.
    """
    longest_ms = segments * SEGMENT_SPACING_MS
    payload: list[Story] = []
    for story in stories:
        sent_ms = story.sendings[0].at_ms
        if payload and sent_ms - payload[0].sendings[0].at_ms > longest_ms:
            payload = []
        payload.append(story)
        if len(payload) == segments:
            yield payload
            payload = []


def _complete_ms(
    payload: Sequence[Story], who: str, data: int, within_ms: float
) -> float:
    """Return when a participant had `data` segments of a payload, Unix ms.

    The result is infinity if the participant never had them. If `within_ms` is finite,
    a segment counts only if its first broadcast arrived, at most `within_ms` later.
    """
    if len(payload) == 1 and within_ms == math.inf:
        return payload[0].received.get(who, math.inf)
    times_ms = sorted(
        story.received[who]
        for story in payload
        if who in story.received
        and (
            within_ms == math.inf
            or (
                story.received_in.get(who) is story.sendings[0]
                and story.received[who] - story.sendings[0].at_ms <= within_ms
            )
        )
    )
    return times_ms[data - 1] if len(times_ms) >= data else math.inf


def _is_false(story: Story) -> bool:
    if story.acknowledged is None:
        return False
    at_ms, _, evidence = story.acknowledged
    first_ms = min(story.received.values(), default=math.inf)
    return evidence is Evidence.BLOOM_FILTER and first_ms > at_ms


def _summary(name: str, durations_s: Sequence[float]) -> dict[str, float]:
    figures = dict.fromkeys(
        (f"{name}_{of}_s" for of in ("mean", "p50", "p95", "p99")), math.nan
    )
    if not durations_s:
        return figures
    quantiles = np.quantile(durations_s, [0.5, 0.95, 0.99]).tolist()
    return dict(zip(figures, [float(np.mean(durations_s)), *quantiles], strict=True))


def ratio(part: float, whole: float) -> float:
    """Return `part` divided by `whole`; NaN if `whole` is 0."""
    return part / whole if whole else math.nan
