"""Whether traces of all messages say what the report says: a property of every run.

``python -m tests.support.trace.agreement`` checks all scenarios.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from connectors.simulator.scenario_files import load_scenario
from sds_core.trace.document import trace_object
from sds_core.trace.trace import Trace
from tests.support.trace.traced import Simulated, simulated

SDS_FIGURES: Mapping[str, tuple[str, ...]] = {
    "first_pass": ("deliveries", "first_pass"),
    "recovered": ("deliveries", "recovered"),
    "undelivered": ("deliveries", "lost"),
    "retracted": ("deliveries", "retracted"),
    "definite": ("acknowledged", "definite"),
    "probable": ("acknowledged", "probable"),
    "acknowledged_in_time": ("acknowledged_in_time",),
    "unacknowledged": ("unacknowledged",),
    "unwitnessed": ("unwitnessed",),
    "gaps_opened": ("gaps", "opened"),
    "gaps_late": ("gaps", "late"),
    "gaps_repaired": ("gaps", "repaired"),
    "gaps_recovered_late": ("gaps", "recovered_late"),
    "gaps_lost": ("gaps", "lost"),
    "gaps_tap_gap": ("gaps", "tap_gap"),
    "gaps_retracted": ("gaps", "retracted"),
    "rebroadcast_repair": ("rebroadcasts", "repair"),
    "rebroadcast_retry": ("rebroadcasts", "retry"),
    "repair_answered": ("repair", "answered"),
    "repair_redundant": ("repair", "redundant"),
    "repair_expired": ("repair", "expired"),
    "request_early": ("repair_timing", "requests_early"),
    "response_unexplained": ("repair_timing", "responses_unexplained"),
}
"""Conclusion of a trace -> figure of the report that counts it."""

MVDS_FIGURES: Mapping[str, tuple[str, ...]] = {
    name: (name,) for name in ("acknowledged_in_time", "unacknowledged", "unwitnessed")
} | {
    "resolved": ("resolved",),
    "unanswered_request": ("unanswered_requests",),
    "unrequested_offer": ("unrequested_offers",),
}

SCENARIOS = (
    "bursty", "churn", "clean", "clock-skew", "flood", "lossy", "lost-tail",
    "mixed-dialects", "mvds-batch", "mvds-interactive", "mvds-offline-90", "partition",
    "phones", "quiet", "repair-storm", "tap-blind", "unrepaired",
)  # fmt: skip


MOST_CHANNELS = 20
"""Channels of a scenario that are compared: each is another pass over all records."""


def disagreements(run: Simulated) -> Iterator[str]:
    """Yield each conclusion of the traces of all messages that differs.

    The incidents of each message must be those of the report, and over all messages of
    a channel the conclusions must add up to its figures.
    """
    report = run.monitor.report(with_detail=True)
    for channel in channels_of(run):
        figures = report["channels"][channel]
        ids = [*run.truth["messages"].get(channel, ())]
        traces = run.trace(channel, ids)
        yield from _differing_sums(channel, traces, figures, SDS_FIGURES)
        yield from _differing_incidents(channel, traces, report["incidents"])
        latencies = {
            message_id: latency_ms
            for message_id, latency_ms in figures["ack_latencies"]
        }
        for one in traces:
            acknowledged = [
                step.at_ms for step in one.evidence.steps if step.what == "definite"
            ]
            first_ms = one.evidence.facts.get("first_copy_ms")
            found = [max(0, at_ms - first_ms) for at_ms in acknowledged]
            if found != [
                ms for ms in [latencies.get(one.message_id)] if ms is not None
            ]:
                yield f"{channel} {one.message_id}: acknowledged after {found}"


def channels_of(run: Simulated) -> list[str]:
    """Return the channels that are compared."""
    return list(run.monitor.report()["channels"])[:MOST_CHANNELS]


def mvds_disagreements(run: Simulated) -> Iterator[str]:
    """As `disagreements`, of the groups of MVDS."""
    report = run.monitor.report(with_detail=True)["views"]["mvds"]
    traces = run.trace("", [*run.truth["messages"]], "mvds")
    for group, figures in report["views"].items():
        of_group = [one for one in traces if one.channel == group]
        if of_group:
            yield from _differing_sums(group, of_group, figures, MVDS_FIGURES)


def _differing_sums(
    channel: str,
    traces: Iterable[Trace],
    figures: Mapping[str, Any],
    names: Mapping[str, tuple[str, ...]],
) -> Iterator[str]:
    counted: Counter[str] = Counter()
    for one in traces:
        counted.update(step.what for step in one.evidence.steps)
    for what, path in names.items():
        figure: Any = figures
        for name in path:
            figure = figure[name]
        if counted[what] != figure:
            yield f"{channel}: {what} is {counted[what]}, {'.'.join(path)} is {figure}"


def _differing_incidents(
    channel: str, traces: Iterable[Trace], incidents: Iterable[dict[str, Any]]
) -> Iterator[str]:
    traced = {
        (one["kind"], one["message_id"]): one
        for trace in traces
        for one in trace_object(trace)["incidents"]
    }
    reported = {
        (one["kind"], one["message_id"]): one
        for one in incidents
        if one["channel"] == channel
    }
    for key in sorted(traced.keys() | reported.keys()):
        if traced.get(key) != reported.get(key):
            yield f"{channel} {key}: {traced.get(key)}, reported {reported.get(key)}"


class Agreement(NamedTuple):
    """The result of a scenario.

    Attributes:
        scenario: Its name.
        messages: Number of messages that were traced.
        differing: A line for each conclusion that differs.
    """

    scenario: str
    messages: int
    differing: list[str]


def agreement(name: str) -> Agreement:
    """Trace all messages of a scenario, and compare."""
    run = simulated(load_scenario(name))
    is_mvds = name.startswith("mvds")
    messages = run.truth["messages"]
    count = len(messages)
    if not is_mvds:
        count = sum(len(messages.get(one, ())) for one in channels_of(run))
    differing = (mvds_disagreements if is_mvds else disagreements)(run)
    return Agreement(name, count, [*differing])


def main() -> int:
    """Check the scenarios that are named, or all."""
    failed = 0
    for name in sys.argv[1:] or SCENARIOS:
        _, messages, differing = agreement(name)
        failed += bool(differing)
        print(
            f"{name}: {messages:,} messages, {len(differing)} disagreements", flush=True
        )
        for line in differing[:20]:
            print(f"  {line}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
