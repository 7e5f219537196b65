"""Writes docs/alerts.md from the rules: ``python -m docs.make_alerts``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dashboards.rules import alerts
from dashboards.rules.alert import Alert, Severity, Subject
from dashboards.rules.inhibitions import INHIBITIONS
from dashboards.rules.pace import LIFE
from dashboards.thresholds import BURN_RATES
from sds_core.observer.channel_table import DEFAULT_SETTINGS
from sds_core.observer.settings import DEFAULTS

PAGE = Path(__file__).with_name("alerts.md")

_HEAD = """\
# Alerts

Which alerts exist, when do they fire, and who should act?

Made from `dashboards/rules/` by `.venv/bin/python -m docs.make_alerts`; do not edit it by hand.
The page [Dashboards and alerts](dashboards.md) lists the files that contain the rules and the file that contains their thresholds.
Commands in runbooks use the names from the shipped [systemd units](install.md#as-a-service), [Compose services](compose.md) and [chart](kubernetes.md).
The `kubectl` commands run in the current namespace.

Act on `critical` now and on `warning` today; `info` needs no action.
If an alert has several severities, each severity has its own threshold or time window.
"""  # noqa: E501 - one sentence per line

_BEHAVIOUR = """\
## How all alerts behave

- **Quiet channels cause no alert**: the rules for channels check shares and numbers of events, never the time since the last event.
- **If taps may have caused a finding, the finding causes no alert.**
  Findings that precede a [capture gap](glossary.md), or do not depend on it, still cause alerts.
  The status page and `sds_alert_held_back` show alerts that are [held back](figures.md#alerts-that-are-held-back).
  The page and the metric show a held-back alert of an MVDS group only while this group is blind.
- **Retracted losses cause no alert.**
- **A muted channel causes no alert** until its muting ends.
- Rules compare event times only with other event times, so neither a replay nor a monitor that catches up causes an alert.
  `SdsMonitorClockWrong` is the exception: if Kafka's clock is unknown, the alert compares record times with the monitor's clock, but fires only if the record times are in the future.
  If Kafka's clock is known, `SdsMonitorClockWrong` compares it with the monitor's clock.
  `SdsMonitorKafkaAway` compares Prometheus's clock with the time of Kafka's last answer, which the monitor takes from its own clock.
- Use a separate Prometheus job for each monitor: in one job, two monitors look like one monitor that moved to another address and kept its figures.
- After an outage of a day or less in which Prometheus could not reach the monitor, alerts count the events of the outage.
  Only two groups of alerts are exceptions.
  Alerts on [error budgets](#objectives) ignore the events of an outage of more than five minutes.
  `SdsRepairExpiring`, `SdsRedundantRepairStorm`, `MvdsMessagesUnacknowledged` and `SdsMirrorLosing` ignore the events of an outage of more than an hour.
  When Prometheus sees a monitor or channel for the first time, figures from before this moment cause no alert.
- The channel `other`, which sums all channels beyond the [cardinality limit](glossary.md), does not count findings that taps may have caused, but counts findings of muted channels.
- The rules are tested with Debian's Prometheus 2.42; `docker-compose.yml` runs Prometheus 3.
"""  # noqa: E501 - one sentence per line

_OBJECTIVES = """\
## Objectives

Each channel has two SLOs (service level objectives), exported as `sds_channel_objective_ratio`; you can change them in the [channel table](channels.md):

- **delivery**, {delivery:.0%}: the share of ended deliveries that were not lost, or whose loss was retracted ([figures.md](figures.md#5-delivery-per-participant));
- **acknowledgement**, {acknowledgement:.0%}: the share of messages that were acknowledged within {deadline_s} s, counting only messages that other participants could have acknowledged ([figures.md](figures.md#4-acknowledgement)).

The share of failures that an SLO allows is the [error budget](glossary.md).
The alert on an error budget fires if the [burn rate](glossary.md) exceeds a row's factor in both windows of this row:

| severity | factor | long window | short window | minimum number of events in the long window |
|---|---|---|---|---|
{burn_rates}

The factors and windows are from The Site Reliability Workbook (Google), chapter 5, and apply to a period of 30 days.
The row with the long window `1d` is from the tool slok/sloth.
With an SLO of 93 % or less, the factor 14.4 is never reached, even if all events fail.
Deliveries and messages are counted in slices of five minutes.
If a capture gap excuses some findings of a slice, the slice counts only a limited number of failures.
The limit is the number of findings of the last ten minutes, without the findings that a capture gap excuses.
Retracted losses are subtracted from the failures of a window of 30 minutes or more.
As many retractions as excused losses are not subtracted, because excused losses are no failures.
A window does not contain data from before Prometheus first saw the monitor.
It also does not contain data from outages of more than five minutes in which Prometheus could not reach the monitor.
"""  # noqa: E501 - one sentence per line

_INHIBITIONS = """\
## Inhibition

The `inhibit_rules` in `dashboards/provisioning/alertmanager.yml` are:

| while this fires | Alertmanager mutes | if these labels are equal | because |
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
