"""Rules by which alerts mute other alerts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Inhibition:
    """A rule of Alertmanager: alerts of `sources` mute alerts of `targets`.

    Each label in `equal` must have the same value in both alerts, or be missing in
    both.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    equal: tuple[str, ...]
    reason: str


INHIBITIONS = (
    Inhibition(
        ('alertname=~"SdsMonitorDown|SdsMonitorStopped|SdsMonitorKafkaAway"',),
        ('channel=~".+"',),
        ("job",),
        "While the monitor or Kafka is down, the state of channels is unknown.",
    ),
    Inhibition(
        ('alertname="SdsMonitorKafkaAway"',),
        ('alertname=~"SdsMonitorStopped|SdsMonitorBehind"',),
        ("job",),
        "While Kafka is unavailable, the monitor's job has no records to read.",
    ),
    Inhibition(
        ('severity="critical"',),
        ('severity="warning"',),
        ("alertname", "job", "instance", "channel"),
        "If an alert fires with both severities, the critical notification is enough.",
    ),
)
