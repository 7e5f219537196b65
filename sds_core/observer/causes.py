"""Types that describe the likely causes of a bad verdict (docs/figures.md, 12).

`Kind.causes` finds the causes of a view's verdict. A cause is stated only if other
explanations are unlikely.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypedDict

from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.view_totals import Excused


class CauseObject(TypedDict):
    """A likely cause of a bad verdict.

    Attributes:
        kind: Name of the rule that found the cause.
        sentence: The cause in one sentence.
        evidence: Counts and ids that support the cause, by name.
    """

    kind: str
    sentence: str
    evidence: dict[str, int | str | Sequence[str]]


class Cause(NamedTuple):
    """A likely cause.

    Attributes:
        text: The cause in one sentence without a full stop; `{}` stands for each name.
        brief: The cause in a few words, with as many `{}` as `text`.
        names: Ids of participants or taps that replace the `{}`, in order. The ids are
            not trusted, because senders choose them.
        evidence: See `CauseObject`.
    """

    kind: str
    text: str
    brief: str
    names: Sequence[str] = ()
    evidence: Mapping[str, int | str | Sequence[str]] = MappingProxyType({})

    def sentence(self, shown: Callable[[str], str] = str) -> str:
        """Return the cause in one sentence, without a full stop.

        `shown` formats each name.
        """
        return self.text.format(*map(shown, self.names))

    def in_brief(self, shown: Callable[[str], str] = str) -> str:
        """Return the cause in a few words; `shown` formats each name."""
        return self.brief.format(*map(shown, self.names))

    def as_object(self) -> CauseObject:
        """Return the cause as a JSON object, for the report and the API."""
        return {
            "kind": self.kind,
            "sentence": self.sentence(),
            "evidence": dict(self.evidence),
        }


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a rule needs, besides the totals of a view, to find causes.

    Attributes:
        clock_ms: Event time now, Unix ms.
        holes: Start and end of each capture gap, Unix ms, by tap of the view. If a tap
            is silent, the silence is included.
        excused: Function that decides whether capture gaps of all taps excuse evidence;
            None if all evidence counts.
    """

    clock_ms: int
    holes: Mapping[str, Sequence[tuple[int, int]]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    excused: Excused | None = None
    settings: ObserverSettings = DEFAULTS
