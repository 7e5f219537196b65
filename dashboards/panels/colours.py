"""Colours. On all dashboards, the same thing has the same colour."""

from __future__ import annotations

from grafana_foundation_sdk.models import dashboard as models

from dashboards.panels.queries import TROUBLE
from sds_core.observer.verdict import Verdict

GOOD, WARNING, BAD, UNKNOWN = "green", "yellow", "red", "purple"
NEUTRAL = "#8e8e8e"

Steps = tuple[tuple[float | None, str], ...]
"""Thresholds, ascending: pairs of a minimum and the colour of values from this minimum
on. The first minimum is None."""

PLAIN: Steps = ((None, "text"),)
"""The thresholds of figures that are neither good nor bad."""

ANY_IS_BAD: Steps = ((None, GOOD), (1, BAD))
ANY_IS_SUSPECT: Steps = ((None, GOOD), (1, WARNING))

VERDICTS = {
    Verdict.FAILING: ("Failing", BAD),
    Verdict.BLIND: ("Blind", UNKNOWN),
    Verdict.DEGRADED: ("Degraded", WARNING),
    Verdict.WARMING_UP: ("Warming up", "blue"),
    Verdict.QUIET: ("Quiet", NEUTRAL),
    Verdict.OK: ("OK", GOOD),
}
"""Words and colour of each verdict; the worst verdict is first."""

OUTCOMES = {
    "first_pass": GOOD,
    "answered": GOOD,
    "repaired": GOOD,
    "late": "light-green",
    "recovered": WARNING,
    "recovered_late": WARNING,
    "tap_gap": UNKNOWN,
    "expired": BAD,
    "lost": BAD,
}
"""Value of a series' label `outcome` -> colour of the series."""

SERIES = {
    **{text: colour for text, colour in VERDICTS.values()},
    "lost": BAD,
    "deliveries lost": "orange",
    "retracted": "blue",
    "in time": GOOD,
    "unacknowledged": WARNING,
    "unwitnessed": NEUTRAL,
    "redundant": WARNING,
    "early": BAD,
    "unexplained": "orange",
    "SLO": NEUTRAL,
}
"""Legend of a series -> colour of the series. Other series get colours from the
palette of Grafana."""


def at_least(objective: float, warning: float) -> Steps:
    """Return thresholds: bad below `warning`, suspect below an SLO, good from it on."""
    return ((None, BAD), (warning, WARNING), (objective, GOOD))


def line_at(limit: float, colour: str = BAD) -> Steps:
    """Return thresholds that draw one line across a graph."""
    return ((None, "transparent"), (limit, colour))


def up_to(limit: float) -> Steps:
    """Return thresholds: good below a limit, bad from the limit upwards."""
    return ((None, GOOD), (limit, BAD))


def texts(words: dict[int, tuple[str, str]]) -> list[models.ValueMapping]:
    """Return mappings from numbers to words, each with its colour."""
    return [
        models.ValueMap(
            options={
                str(value): models.ValueMappingResult(
                    text=text, color=colour, index=index
                )
                for index, (value, (text, colour)) in enumerate(words.items())
            }
        )
    ]


VERDICT_MAPPINGS = texts({rank: VERDICTS[one] for one, rank in TROUBLE.items()})
"""Mappings from the numbers in `TROUBLE` to the words and colours of verdicts."""
