"""Rules by which alerts mute other alerts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Inhibition:
    """An Alertmanager rule: alerts that match `sources` mute alerts of `targets`.

    The labels `equal` must be equal in both alerts, or missing in both.
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
        "Without the monitor or its Kafka, the state of channels is unknown.",
    ),
    Inhibition(
        ('alertname="SdsMonitorKafkaAway"',),
        ('alertname=~"SdsMonitorStopped|SdsMonitorBehind"',),
        ("job",),
        "The job has nothing to read while Kafka is unavailable.",
    ),
    Inhibition(
        ('severity="critical"',),
        ('severity="warning"',),
        ("alertname", "job", "instance", "channel"),
        "If an alert fires with both severities, one notification is enough.",
    ),
)
