"""Derives a channel's plan from a monitor's history.

The module also lists the assumptions about settings that the history does not store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sds_core.planning.channel import MAX_SEGMENT_BYTES, ChannelPlan
from sds_core.planning.closed_forms import frame_parts
from sds_core.planning.errors import TooLittleHistory, TooLittleTraffic
from sds_core.planning.filters import filter_ids
from sds_core.planning.hours import DAY_HOURS, Floats, hours_of
from sds_core.planning.measures import (
    ACK,
    DELIVERIES,
    EPOCH,
    FILTER,
    PARTICIPANTS,
    RECOVERY,
    Measures,
    bytes_repeated,
)
from sds_core.planning.outcome import PART_FIGURES, ratio
from sds_core.reading import read

LEAST_MESSAGES = 20
"""Minimum number of messages in the last week of the history.

Only messages with a seen frame count. With fewer messages, no plan is made.
"""

_WEEK_HOURS = 7 * DAY_HOURS
_PARTS = (
    "bytes_content", "bytes_history", "bytes_bloom", "bytes_repair", "bytes_other"
)  # fmt: skip
"""For each figure in `PART_FIGURES`, the column of the history, in the same order."""


class MeasuredChannel(NamedTuple):
    """A channel's plan and figures according to its history.

    Attributes:
        figures: Measured figures. The keys are field names of `Outcome`.
        hours: Number of hours of history that were used, at most a week.
        assumed: Assumptions about values that the history lacks, as sentences.
    """

    plan: ChannelPlan
    figures: Mapping[str, float]
    hours: int
    assumed: Sequence[str]


def measured_channel(
    rows: Sequence[Mapping[str, Any]],
    measures: Measures,
    *,
    end_ms: int,
    now_ms: int,
) -> MeasuredChannel:
    """Return the plan of an SDS channel according to the last week of its history.

    For the arguments, see `hours_of`.

    Raises:
        TooLittleTraffic: The last week has fewer than `LEAST_MESSAGES` messages with a
            seen frame, fewer than 2 participants, or no whole hour.
        Silent: The channel has sent nothing for longer than `hours.SILENCE_MS`.
        ClockJumped: The newest row is in the future by more than `hours.CLOCK_MS`.
    """
    try:
        hours = hours_of(
            rows,
            measures.counters,
            measures.gauges,
            end_ms=end_ms,
            now_ms=now_ms,
            least_days=0,
        )
    except TooLittleHistory as error:
        raise TooLittleTraffic(0, 0, 0, LEAST_MESSAGES) from error
    used = min(len(hours.grown["messages"]), _WEEK_HOURS)
    grown = {name: float(one[-used:].sum()) for name, one in hours.grown.items()}
    gauges = {name: one[-used:] for name, one in hours.gauges.items()}
    # `messages` also counts messages without a seen frame. Their length is unknown, so
    # they do not count towards `LEAST_MESSAGES`.
    messages = min(grown["messages"], grown["frames_content"])
    participants = int(gauges[PARTICIPANTS].max())
    if messages < LEAST_MESSAGES or participants < 2:
        raise TooLittleTraffic(int(messages), participants, used, LEAST_MESSAGES)
    repeated = float(bytes_repeated(hours)[-used:].sum())
    week = _Week(grown, gauges, used / DAY_HOURS, measures, repeated)
    settings, assumed = week.settings()
    plan = read(settings, ChannelPlan)
    return MeasuredChannel(plan, week.figures(plan.epoch_messages), used, assumed)


class _Week(NamedTuple):
    """Figures of the last `days` days of a history, at most a week.

    `repeated` is the number of retransmitted bytes.
    """

    grown: Mapping[str, float]
    gauges: Mapping[str, Floats]
    days: float
    measures: Measures
    repeated: float

    def settings(self) -> tuple[dict[str, Any], list[str]]:
        grown = self.grown
        first, _, judged = self._deliveries()
        values: dict[str, Any] = {
            "participants": int(self.gauges[PARTICIPANTS].max()),
            "messages_per_day": grown["messages"] / self.days,
            "loss": 1 - first / judged if judged else 0.0,
        }
        bits_set, bits, hashes = (self.gauges[name][-1:] for name in FILTER)
        if bits[0]:
            values["filter_ids"] = round(filter_ids(bits_set, bits, hashes)[0])
        likely = ChannelPlan(participants=2, messages_per_day=1)
        contents = grown["frames_content"] + grown["frames_ephemeral"]
        mean_bytes = round(grown["bytes_content"] / contents)
        example = frame_parts(likely, mean_bytes)
        # `mean_bytes` includes the content field's tag and length, which have
        # `example.content - mean_bytes` bytes. Subtract them.
        payload_bytes = max(1, 2 * mean_bytes - example.content)
        # In a plan, a longer payload has several frames, but a message of the history
        # has one.
        values |= dict.fromkeys(
            ("payload_least_bytes", "payload_most_bytes"),
            min(payload_bytes, MAX_SEGMENT_BYTES),
        )
        entry_bytes = example.history / likely.setting("causal_history")
        entries = round(grown["bytes_history"] / self._framed / entry_bytes)
        values["causal_history"] = entries
        assumed = [
            "The history does not store delays, offline times, nor the intervals of "
            "sync messages, repair and retransmissions: they are the plan's.",
            f"Participants behave like the profile {likely.profile}; their causal "
            f"histories have {entries} entries, if an entry has {entry_bytes:.0f} "
            "bytes.",
        ]
        if not judged:
            assumed.append("No delivery is finished in the history: the loss is 0.")
        if payload_bytes > MAX_SEGMENT_BYTES:
            assumed.append(
                f"The content of a message has {payload_bytes:,} bytes on average; the "
                f"plan assumes the maximum, {MAX_SEGMENT_BYTES:,} bytes."
            )
        return values, assumed

    def figures(self, epoch_messages: int) -> dict[str, float]:
        grown, days = self.grown, self.days
        first, eventual, judged = self._deliveries()
        total = sum(grown[column] for column in self.measures.parts.values())
        most = float(self.gauges[EPOCH].max())
        return {
            "bytes_per_day": total / days,
            **{
                figure: grown[column] / days
                for figure, column in zip(PART_FIGURES, _PARTS, strict=True)
            },
            "retransmission_bytes_per_day": self.repeated / days,
            "bytes_per_message": total / grown["messages"],
            "frames_per_day": (self._framed + grown["frames_ephemeral"]) / days,
            "repair_overhead": ratio(self.repeated + grown["bytes_repair"], total),
            "epoch_messages": most,
            "epoch_used": most / epoch_messages,
            "monitor_first_pass": ratio(first, judged),
            "monitor_eventual": ratio(eventual, judged),
            "monitor_ack_mean_s": self._mean_s(ACK),
            "monitor_recovery_mean_s": self._mean_s(RECOVERY),
        }

    @property
    def _framed(self) -> float:
        return self.grown["frames_content"] + self.grown["frames_sync"]

    def _deliveries(self) -> tuple[float, float, float]:
        first, recovered, lost, retracted = (self.grown[name] for name in DELIVERIES)
        return first, first + recovered + retracted, first + recovered + lost

    def _mean_s(self, name: str) -> float:
        return ratio(self.grown[f"{name}_sum"] / 1_000, self.grown[f"{name}_count"])
