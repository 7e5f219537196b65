"""Panels that may show nothing although all is well, and why."""

from __future__ import annotations

from dashboards.links import CAPACITY, CHANNEL, FLEET, MONITOR
from dashboards.panels.mirror import mirror, nodes

_NO_MIRROR = "no mirror runs"

EMPTY_PANELS: dict[tuple[str, str], str] = {
    (FLEET, "Alerts that fire"): "no alert fires",
    (CHANNEL, "Oldest in flight"): "no message is in flight",
    (CHANNEL, "Muted until"): "the channel is not muted",
    (CAPACITY, "When filters pass 1 %"): "no filter grows",
} | {
    (MONITOR, panel.build().title or ""): _NO_MIRROR for panel in [*mirror(), *nodes()]
}
"""Reasons by uid of the dashboard and title of the panel."""
