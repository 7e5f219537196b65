"""Replaces participants' names in a trace that becomes part of a bug report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from sds_core.observer.incidents import Incident
from sds_core.observer.tracing import Conclusion, Step
from sds_core.trace.trace import Trace

_NAMED_FACTS = frozenset({"sender", "named_sender"})


class Pseudonyms:
    """Replaces participants' names.

    One instance replaces a name by the same pseudonym in all traces.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def replaced(self, trace: Trace) -> Trace:
        """Return the trace with the names of all participants replaced."""
        evidence = trace.evidence
        people = [replace(one, name=self._of(one.name)) for one in evidence.people]
        summary = evidence.summary
        return replace(
            trace,
            evidence=replace(
                evidence,
                facts={
                    key: self._of(value) if key in _NAMED_FACTS else value
                    for key, value in evidence.facts.items()
                },
                steps=[self._step(one) for one in evidence.steps],
                people=people,
                incidents=[self._incident(one) for one in evidence.incidents],
                conclusions=[self._conclusion(one) for one in evidence.conclusions],
                summary=None if summary is None else self._conclusion(summary),
                unknown=[(text, self._all(names)) for text, names in evidence.unknown],
            ),
        )

    def _of(self, name: Any) -> str:
        if not name:
            return ""
        number = len(self._names) + 1
        return self._names.setdefault(str(name), f"participant-{number}")

    def _all(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self._of, names))

    def _step(self, step: Step) -> Step:
        return replace(
            step,
            by=self._of(step.by),
            to=self._of(step.to),
            names=self._all(step.names),
        )

    def _conclusion(self, conclusion: Conclusion) -> Conclusion:
        return replace(conclusion, names=self._all(conclusion.names))

    def _incident(self, incident: Incident) -> Incident:
        return replace(
            incident,
            sender=self._of(incident.sender),
            lacking={self._of(who): ms for who, ms in incident.lacking.items()},
            named_by=list(self._all(incident.named_by)),
        )
