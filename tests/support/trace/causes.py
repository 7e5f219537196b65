"""Whether the cause of an incident can be named from its trace alone.

The scenarios make incidents of each kind; the simulator's truth says which cause each
message has. `named_cause` sees only the JSON of the trace. The table is printed by
``python -m tests.support.trace.causes``.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from connectors.simulator.scenario_files import load_scenario
from sds_core.simulation.scenario import Scenario
from sds_core.trace.document import trace_object
from sds_core.wire import decode, encode
from tests.support.accuracy.causes import made_scenario
from tests.support.trace.traced import Simulated, simulated
from tests.support.written_segments import nim_segments

EACH = 10
_PER_PAYLOAD = 3
_LATE_MS = 60_000
_AWAY_MS = 3_600_000

Document = Mapping[str, Any]


class Cause(NamedTuple):
    """A cause, and whom it concerns."""

    what: str
    who: frozenset[str] = frozenset()


class Case(NamedTuple):
    """A message whose cause the simulator knows."""

    channel: str
    message_id: str
    cause: Cause


def named_cause(document: Document) -> Cause:
    """Name the cause, from the JSON of a trace."""
    standing = {
        one["kind"]: frozenset(one["lacking"])
        for one in document["incidents"]
        if one["ended"] is None
    }
    figures = {
        one["figure"]: frozenset(one["names"]) for one in document["conclusions"]
    }
    segments = document["facts"].get("segments")
    if "lost" in standing:
        return Cause("lost")
    if "segmented.incomplete" in figures and segments and segments["missing_data"]:
        return Cause("segment missing")
    if "unacknowledged" in standing:
        return Cause("never acknowledged")
    if "undelivered" in standing:
        return Cause("not delivered", standing["undelivered"])
    if "gaps.tap_gap" in figures:
        return Cause("blind tap")
    if "rebroadcasts.repair" in figures or "gaps.repaired" in figures:
        return Cause("repaired late")
    away = frozenset(
        one["name"]
        for one in document["participants"]
        if one["heard_after_ms"] is not None
        and one["heard_before_ms"] is not None
        and one["heard_after_ms"] - one["heard_before_ms"] > _AWAY_MS
    )
    return Cause("away", away)


_MENDS_NOTHING = {"max_retries": 0, "repair": False, "lost_after_ms": 60_000}


def _cut(direction: str) -> dict[str, Any]:
    span = {"from_s": 200, "until_s": 300, "participants": 1}
    return {"partitions": [span | {"direction": direction}]}


def _stories(run: Simulated) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for channel, stories in run.truth["messages"].items():
        for message_id, story in stories.items():
            if story["transmissions"] and story["kind"] == "content":
                yield channel, message_id, story


def _was_seen(story: Mapping[str, Any]) -> bool:
    return any(one["seen_by"] for one in story["transmissions"])


def _others(story: Mapping[str, Any]) -> dict[str, int]:
    received = story["received"].items()
    return {who: ms for who, ms in received if who != story["sender"]}


def _lost(run: Simulated) -> Iterator[Case]:
    for channel, message_id, story in _stories(run):
        gap = story["gap"]
        if gap and gap["outcome"] == "lost" and not _others(story):
            yield Case(channel, message_id, Cause("lost"))


def _not_delivered(run: Simulated) -> Iterator[Case]:
    for channel, message_id, story in _stories(run):
        lost_to = {
            who for who, one in story["deliveries"].items() if one["outcome"] == "lost"
        }
        lacked = set(story["never_received"])
        if len(lost_to) == 1 and lost_to == lacked and story["acknowledged"]:
            yield Case(channel, message_id, Cause("not delivered", frozenset(lacked)))


def _blind(run: Simulated) -> Iterator[Case]:
    for channel, message_id, story in _stories(run):
        gap = story["gap"]
        if not _was_seen(story) and _others(story) and gap and "tap" in gap["outcome"]:
            yield Case(channel, message_id, Cause("blind tap"))


def _repaired(run: Simulated) -> Iterator[Case]:
    for channel, message_id, story in _stories(run):
        late = {
            who
            for who, place in story["received_in"].items()
            if story["transmissions"][place]["cause"] == "repair"
            and story["received"][who] - story["sent_ms"] > _LATE_MS
            and story["transmissions"][place]["seen_by"]
        }
        if late and not story["never_received"]:
            yield Case(channel, message_id, Cause("repaired late"))


def _unacknowledged(run: Simulated) -> Iterator[Case]:
    standing = {
        (channel, message_id)
        for (channel, kind, message_id), one in run.monitor.incidents.items()
        if kind == "unacknowledged" and one.ended_ms is None
    }
    for channel, message_id, story in _stories(run):
        if (channel, message_id) in standing and not _others(story):
            yield Case(channel, message_id, Cause("never acknowledged"))


def _away(run: Simulated) -> Iterator[Case]:
    for channel, message_id, story in _stories(run):
        # Who was away when it was sent, and received it hours later.
        late = {
            who
            for who, at_ms in _others(story).items()
            if at_ms - story["sent_ms"] > 2 * 3_600_000
        }
        if late and _was_seen(story):
            yield Case(channel, message_id, Cause("away", frozenset(late)))


def _segment(run: Simulated) -> Iterator[Case]:
    stories = {message_id: story for _, message_id, story in _stories(run)}
    for channel, payload in _payloads(run):
        seen = [one for one in payload if _was_seen(stories[one])]
        if len(payload) == _PER_PAYLOAD and 0 < len(seen) < _PER_PAYLOAD:
            yield Case(channel, seen[0], Cause("segment missing"))


def _payloads(run: Simulated) -> Iterator[tuple[str, list[str]]]:
    """Yield messages of one sender in groups, each of which becomes one payload."""
    sent: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for channel, message_id, story in _stories(run):
        sent[channel, story["sender"]].append((story["sent_ms"], message_id))
    for (channel, _), messages in sent.items():
        ids = [message_id for _, message_id in sorted(messages)]
        for begin in range(0, len(ids), _PER_PAYLOAD):
            yield channel, ids[begin : begin + _PER_PAYLOAD]


def _in_segments(run: Simulated) -> Simulated:
    """Return the same traffic with a segment as content of each message."""
    contents = {
        message_id: segment
        for number, (_, payload) in enumerate(_payloads(run))
        for message_id, segment in zip(
            payload, nim_segments(number, _PER_PAYLOAD), strict=False
        )
    }
    records = []
    for record in run.records:
        if record.key is not None:
            frame = decode(record.value or b"")
            content = contents.get(frame.message_id, frame.content)
            value = encode(frame._replace(content=content))
            record = replace(record, value=value)
        records.append(record)
    return replace(run, records=records)


class Kind(NamedTuple):
    """A kind of incident: its scenario, and its cases in a run."""

    scenario: Scenario
    cases: Callable[[Simulated], Iterator[Case]]
    changed: Callable[[Simulated], Simulated] = lambda run: run


def _file(name: str) -> Scenario:
    scenario = load_scenario(name)
    assert isinstance(scenario, Scenario)
    return scenario


_PHONES = made_scenario(
    "phones",
    duration_s=6 * 3600,
    settle_s=1800,
    channels=[{"name": "phones", "traffic": {"mean_interval_s": 60}}],
    churn={
        "absences": {
            "share": 0.2,
            "mean_present_s": 1800,
            "mean_away_s": 3 * 3600,
            "least_away_s": 2 * 3600,
            "fetch_after_s": 20,
            "state": "kept",
        }
    },
)

KINDS: Mapping[str, Kind] = {
    "lost to everybody": Kind(_file("unrepaired"), _lost),
    "not delivered to one": Kind(
        made_scenario("cut", profile=_MENDS_NOTHING, network=_cut("incoming")),
        _not_delivered,
    ),
    "blind tap": Kind(_file("tap-blind"), _blind),
    "repaired late": Kind(made_scenario("repaired", network={"loss": 0.1}), _repaired),
    "never acknowledged": Kind(
        made_scenario(
            "unheard",
            participants=3,
            profile={
                "max_retries": 1,
                "repair": False,
                "sync_interval_ms": 300_000,
            },
            network={"loss": 0.75},
            channels=[{"name": "unheard", "traffic": {"mean_interval_s": 8}}],
        ),
        _unacknowledged,
    ),
    "segment missing": Kind(_file("unrepaired"), _segment, _in_segments),
    "phone away for hours": Kind(_PHONES, _away),
}


@cache
def run_of(name: str, seed: int = 1) -> Simulated:
    """Return a run of the scenario of a kind."""
    return simulated(KINDS[name].scenario, seed)


def cases_of(name: str, many: int = EACH) -> Iterator[tuple[Case, Document]]:
    """Yield incidents of a kind with their traces, from as many seeds as it takes."""
    kind, found = KINDS[name], 0
    for seed in range(1, 20):
        run = run_of(name, seed)
        cases = list(kind.cases(run))[: many - found]
        changed = kind.changed(run)
        for channel in dict.fromkeys(one.channel for one in cases):
            some = [one for one in cases if one.channel == channel]
            traces = changed.trace(channel, [one.message_id for one in some])
            yield from zip(some, map(trace_object, traces), strict=True)
        found += len(cases)
        if found >= many:
            return


def main() -> int:
    """Print how many causes are named right."""
    failed = 0
    for name in KINDS:
        cases = list(cases_of(name))
        wrong = [
            (case, cause)
            for case, document in cases
            if (cause := named_cause(document)) != case.cause
        ]
        right = len(cases) - len(wrong)
        failed += right < 0.9 * EACH
        print(f"{name}: {right} of {len(cases)}")
        for case, cause in wrong:
            print(f"  {case} is said to be {cause}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
