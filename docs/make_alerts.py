"""Writes docs/alerts.md from the rules: ``python -m docs.make_alerts``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dashboards.rules import INHIBITIONS, Alert, Severity, Subject, alerts
from dashboards.rules.pace import LIFE
from dashboards.thresholds import BURN_RATES
from sds_core.observer.channel_table import DEFAULT_SETTINGS
from sds_core.observer.settings import DEFAULTS

PAGE = Path(__file__).with_name("alerts.md")

_HEAD = """\
# Alerts

Made from `dashboards/rules/` by `.venv/bin/python -m docs.make_alerts`; do not edit it by hand.
The rules themselves are in `dashboards/generated/prometheus/`, made by `.venv/bin/python -m dashboards.build`; their limits are in `dashboards/thresholds.py`.
Each alert has a runbook, which the monitor serves too, at `/runbooks/` and the alert's name.

## Severities

| severity | who acts |
|---|---|
| `critical` | a person, now |
| `warning` | a person, today |
| `info` | nobody; it is good to know |

Several severities of one alert are several limits or windows.

- **Quiet channels alert nobody**: what is compared are shares and numbers of events, never the time since the last one.
- **A channel that was blind is left out**: what no tap heard must not look like loss.
- **A loss that was retracted is none.**
- **Muted channels are silent** until their time is over.
- Times of events are compared with each other only, never with the wall clock, so that a replay or a monitor that catches up alerts nobody by its clock.
- A monitor that comes back at another address goes on with its figures. One monitor per job in Prometheus is the rule; two of one job are taken for one that moves.
- What was counted while nobody looked, for at most a day, counts when the figures come back; a monitor or a channel whose old figures Prometheus sees for the first time alerts nobody by them.
- The channels beyond the label budget are together the channel `other`. Its alerts heed the blindness of every channel that is not muted; a muted one without a label of its own is muted for nobody.
- The rules are tested with Prometheus 2.42, that of Debian; `docker-compose.yml` runs a release of 3.
"""  # noqa: E501 - one sentence per line

_OBJECTIVES = """\
## Objectives

Each channel has two, {delivery:.0%} and {acknowledgement:.0%} unless the channel table says otherwise, exported as `sds_channel_objective_ratio`:

- **delivery**: of the deliveries that ended, those that were not lost for good ([figures.md](figures.md#5-delivery-per-participant));
- **acknowledgement**: of the messages that others could have acknowledged, those that were acknowledged by their deadline of {deadline_s} s ([figures.md](figures.md#4-acknowledgement)).

What may fail is the error budget, and the alerts on it ask how fast it is used up: a pair of windows fires while both lose more than so many times what the objective allows.

| severity | times | long window | short window | at least in the long window |
|---|---|---|---|---|
{burn_rates}

Factors and windows are for a period of 30 days: those of The Site Reliability Workbook (Google), chapter 5, and for a day those of slok/sloth.
Of an objective of 93 % or less the fastest pair cannot fire, since not more than all can fail.
Until Prometheus has seen the monitor for as long as a window, the window holds what there is.
What ended while it did not see the monitor for longer than a slice is in no window.
Deliveries and messages are counted in slices of five minutes; a slice in which the channel was blind counts in no window.
"""  # noqa: E501 - one sentence per line

_INHIBITIONS = """\
## Who is told of what

Alertmanager inhibits (`inhibit_rules` of `dashboards/provisioning/alertmanager.yml`):

| while one of these fires | these are not told | where equal | because |
|---|---|---|---|
{inhibitions}
"""


def page() -> str:
    """The page as it must be."""
    burn_rates = "\n".join(
        f"| {burn.severity} | {burn.factor:g} | {LIFE(burn.long)} "
        f"| {LIFE(burn.short)} | {burn.least_events} |"
        for burn in BURN_RATES
    )
    inhibitions = "\n".join(
        f"| {_codes(one.sources)} | {_codes(one.targets)} | {_codes(one.equal)} "
        f"| {one.reason} |"
        for one in INHIBITIONS
    )
    parts = [
        _HEAD,
        *(_section(subject) for subject in Subject),
        _OBJECTIVES.format(
            burn_rates=burn_rates,
            delivery=DEFAULT_SETTINGS.delivery_objective,
            acknowledgement=DEFAULT_SETTINGS.acknowledgement_objective,
            deadline_s=DEFAULTS.ack_deadline_ms // 1000,
        ),
        _INHIBITIONS.format(inhibitions=inhibitions),
    ]
    return "\n".join(parts)


def _section(subject: Subject) -> str:
    rows = "\n".join(_rows([one for one in alerts() if one.subject is subject]))
    return (
        f"## {subject.value}\n\n| alert | severity | meaning |\n|---|---|---|\n{rows}\n"
    )


def _rows(found: list[Alert]) -> Iterator[str]:
    for name, summary in {one.name: one.summary for one in found}.items():
        of_name = {one.severity for one in found if one.name == name}
        severities = ", ".join(one for one in Severity if one in of_name)
        runbook = f"../dashboards/runbooks/{name}.md"
        yield f"| [{name}]({runbook}) | {severities} | {summary} |"


def _codes(texts: tuple[str, ...]) -> str:
    return ", ".join(f"`{text}`".replace("|", "\\|") for text in texts)


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
