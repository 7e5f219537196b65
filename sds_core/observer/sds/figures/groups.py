"""Headings of a channel's page."""

from __future__ import annotations

ACKNOWLEDGEMENT = "Acknowledgement"
DELIVERIES = "Deliveries"
GAPS = "Missing dependencies"
REPAIR = "Repair"
TRAFFIC = "Traffic"

ALL = (ACKNOWLEDGEMENT, DELIVERIES, GAPS, REPAIR, TRAFFIC)
"""Headings in the order of the page."""
