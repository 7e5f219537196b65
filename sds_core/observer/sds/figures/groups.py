"""Headings of a channel's page."""

from __future__ import annotations

ACKNOWLEDGEMENT = "Acknowledgement"
DELIVERIES = "Deliveries"
GAPS = "Missing dependencies"
REPAIR = "Repair"
TRAFFIC = "Traffic"
BUDGET = "Rate-limit budget"
SEGMENTS = "Segments"

ALL = (ACKNOWLEDGEMENT, DELIVERIES, GAPS, REPAIR, TRAFFIC, BUDGET, SEGMENTS)
"""Headings in the order of the page."""
