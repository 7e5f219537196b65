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

Which alerts exist, when do they fire, and who should act?

Made from `dashboards/rules/` by `.venv/bin/python -m docs.make_alerts`; do not edit it by hand.
The [dashboards page](dashboards.md) shows where rules and limits are.
Each alert links to its runbook in the [published documentation](dashboards.md#where-the-runbooks-are); the monitor serves the same at `/runbooks/<alert>`.
Commands of runbooks expect the names of the shipped [systemd units](install.md#as-a-service), [Compose services](compose.md) and [chart](kubernetes.md), the latter in the namespace that `kubectl` uses.

Act on `critical` now and on `warning` today; `info` needs no action.
Several severities of one alert are several limits or windows.
"""  # noqa: E501 - one sentence per line

_BEHAVIOUR = """\
## How all alerts behave

- **Quiet channels cause no alert**: rules compare shares and numbers of events, never the time since the last one.
- **Findings that taps may have caused cause no alert**: each finding is judged by itself, so that one from before a [capture gap](glossary.md), or independent of it, still counts.
  The status page lists the alerts that are [held back](figures.md#alerts-that-are-held-back), and `sds_alert_held_back` is above 0 meanwhile.
  Alerts on groups of MVDS are held back while the group is blind.
- **Retracted losses do not count, and muted channels are silent** until their time is over.
- Event times are compared only with each other, so that a replay, or a monitor that catches up, causes no alert by its clock.
  Only `SdsMonitorClockWrong` compares records with the wall clock, and only those stamped ahead of it count.
  `SdsMonitorKafkaAway` compares the monitor's wall clock, at Kafka's last answer, with Prometheus's.
- If a monitor comes back at another address, its figures continue.
  Use one Prometheus job per monitor: two monitors in one job look like one that moves.
- After a gap of at most a day in Prometheus, events during the gap count once the figures are back; old figures of a monitor or channel that Prometheus sees for the first time cause no alert.
- Channels beyond the [cardinality limit](glossary.md) together are the channel `other`.
  Findings that taps may have caused do not count there either; muting does not affect channels exported as `other`.
- The rules are tested with Debian's Prometheus 2.42; `docker-compose.yml` runs a release of 3.
"""  # noqa: E501 - one sentence per line

_OBJECTIVES = """\
## Objectives

Each channel has two SLOs (service level objectives), exported as `sds_channel_objective_ratio`; the [channel table](channels.md) changes them:

- **delivery**, {delivery:.0%}: share of ended deliveries that were not finally lost ([figures.md](figures.md#5-delivery-per-participant));
- **acknowledgement**, {acknowledgement:.0%}: share of messages acknowledged by their deadline of {deadline_s} s, of those that others could have acknowledged ([figures.md](figures.md#4-acknowledgement)).

The rest is the error budget.
The burn rate says how many times faster than allowed failures use it up: at 1, the budget of 30 days lasts 30 days.
A budget alert fires if, in both windows of a row, the burn rate exceeds the factor:

| severity | factor | long window | short window | least events in the long window |
|---|---|---|---|---|
{burn_rates}

Factors and windows are for a period of 30 days, from The Site Reliability Workbook (Google), chapter 5; the pair of a day is from slok/sloth.
With an SLO of 93 % or less, the fastest pair never fires: more than all events would have to fail.
Deliveries and messages are counted in slices of five minutes.
If failures in a slice do not count because of a capture gap, at most as many of its failures count as do in the last ten minutes.
Until Prometheus has seen the monitor for a whole window, the window holds the data that exist; what ended while Prometheus missed the monitor for more than a slice is in no window.
"""  # noqa: E501 - one sentence per line

_INHIBITIONS = """\
## Inhibition

`inhibit_rules` of `dashboards/provisioning/alertmanager.yml`:

| while this fires | Alertmanager mutes | with equal | because |
|---|---|---|---|
{inhibitions}
"""


def page() -> str:
    """Return the whole page."""
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
        _BEHAVIOUR,
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
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
