"""Which alerts keep which others from being told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Inhibition:
    """One rule of Alertmanager.

    Attributes:
        sources: Matchers of the alerts that inhibit.
        targets: Matchers of those that are not told meanwhile.
        equal: Labels that both must have alike; one that both lack is alike.
        reason: Why, in one sentence.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    equal: tuple[str, ...]
    reason: str


INHIBITIONS = (
    Inhibition(
        ('alertname=~"SdsMonitorDown|SdsMonitorStopped"',),
        ('channel=~".+"',),
        ("job",),
        "Without the monitor nothing is known of channels.",
    ),
    Inhibition(
        ('alertname="SdsTapBlind"',),
        (
            'alertname=~"SdsMessagesLost|SdsDeliveryBudgetBurn'
            '|SdsAcknowledgementBudgetBurn|SdsRepairExpiring"',
            'channel="other"',
        ),
        ("job",),
        "What the taps did not hear looks like loss; channels with a label of their "
        "own heed their own blindness, and `other` has no verdict.",
    ),
    Inhibition(
        ('severity="critical"',),
        ('severity="warning"',),
        ("alertname", "job", "instance", "channel"),
        "Of one alert the graver is told.",
    ),
)


def inhibit_rules() -> list[dict[str, Any]]:
    """As ``inhibit_rules`` of ``alertmanager.yml`` must have them."""
    return [
        {
            "source_matchers": list(inhibition.sources),
            "target_matchers": list(inhibition.targets),
            "equal": list(inhibition.equal),
        }
        for inhibition in INHIBITIONS
    ]
