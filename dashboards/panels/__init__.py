"""The dashboards, made from the declared metrics for Grafana 10 and later."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards import CAPACITY, CHANNEL, FLEET, GROUPS, MONITOR, REPAIR, Links
from dashboards.panels.capacity import capacity
from dashboards.panels.channel import channel
from dashboards.panels.fleet import fleet
from dashboards.panels.groups import groups
from dashboards.panels.monitor import monitor
from dashboards.panels.repair import repair


def dashboards(links: Links) -> dict[str, Dashboard]:
    """Return all dashboards by uid.

    To encode them as JSON, use `grafana_foundation_sdk.cog.encoder`.
    """
    return {
        FLEET: fleet(links),
        CHANNEL: channel(links),
        REPAIR: repair(links),
        CAPACITY: capacity(links),
        GROUPS: groups(links),
        MONITOR: monitor(links),
    }
