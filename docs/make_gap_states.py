"""Draws the states of gaps in docs/figures.md: ``python -m docs.make_gap_states``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.page_part import PagePart
from sds_core.observer.sds.gap_states import (
    ARRIVALS,
    TRANSITIONS,
    GapEvent,
    GapState,
    Transition,
)

PART = PagePart("figures.md", "make_gap_states", "the gap states")


_FIRST = GapState.NOTED
"""State of an id when it is first named."""

_LABELS = {
    GapEvent.NAMED_IN_WARM_UP: "named in the warm-up",
    GapEvent.NAMED_BEFORE_START: "named before the start",
    GapEvent.NAMED_AFTER_START: "named after the start",
    GapEvent.SETTLE_TIME_PASSED: "settle time passed",
    GapEvent.DEADLINE_PASSED: "deadline passed",
    GapEvent.DEADLINE_PASSED_WITH_EVIDENCE: "deadline passed, others had it",
    GapEvent.ARRIVED: "arrived, never requested",
    GapEvent.ARRIVED_AFTER_REQUEST: "arrived within the repair window",
    GapEvent.ARRIVED_AFTER_REPAIR_WINDOW: "arrived after the repair window",
    GapEvent.ARRIVED_AFTER_HORIZON: "arrived after the retention window",
    GapEvent.FORGOTTEN: "forgotten",
}


def diagram() -> str:
    """Return the Mermaid diagram: an arrow for each change of state and its counts."""
    lines = ["stateDiagram-v2", f"    [*] --> {_FIRST.name}: first named"]
    for state, row in TRANSITIONS.items():
        for transition, events in _grouped(state, row):
            next_ = "[*]" if transition.next is None else transition.next.name
            label = _label(events) + _counted(transition.counts)
            lines.append(f"    {state.name} --> {next_}: {label}")
    return "\n".join(lines)


def _grouped(
    state: GapState, row: Mapping[GapEvent, Transition]
) -> Iterator[tuple[Transition, list[GapEvent]]]:
    """Group events of a state with the same effect; omit those that change nothing."""
    groups: list[tuple[Transition, list[GapEvent]]] = []
    for event, transition in sorted(row.items()):
        for known, events in groups:
            if known == transition:
                events.append(event)
                break
        else:
            groups.append((transition, [event]))
    return ((done, events) for done, events in groups if done.next is not state)


def _label(events: list[GapEvent]) -> str:
    labels = [_LABELS[event] for event in events if event not in ARRIVALS]
    arrivals = [event for event in events if event in ARRIVALS]
    if len(arrivals) == len(ARRIVALS):
        labels.insert(0, "arrived")
    elif GapEvent.ARRIVED_AFTER_HORIZON not in arrivals and len(arrivals) > 1:
        labels.insert(0, "arrived in the retention window")
    else:
        labels = [_LABELS[event] for event in arrivals] + labels
    return " or ".join(labels)


def _counted(counts: Mapping[str, int]) -> str:
    changes = [
        f"{name.removeprefix('gaps_')} {change:+d}" for name, change in counts.items()
    ]
    return f" ({', '.join(changes)})" if changes else ""


def block() -> str:
    """Return the diagram with the marks around it."""
    return f"{PART.begin}\n```mermaid\n{diagram()}\n```\n{PART.end}"


def main() -> None:
    """Write the diagram into the page."""
    PART.write(block())


if __name__ == "__main__":
    main()
