"""Headings of a group's page."""

from __future__ import annotations

DELIVERIES = "Deliveries"
WASTE = "Waste"
TRAFFIC = "Traffic"

ALL = (DELIVERIES, WASTE, TRAFFIC)
"""Headings in the order of the page."""
