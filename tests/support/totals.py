"""Totals for tests."""

from __future__ import annotations

import msgspec

from sds_core.observer.histogram import Histogram
from sds_core.observer.sds.totals import ChannelTotals


def numbered_totals(factor: int) -> ChannelTotals:
    """Totals whose counters are distinct multiples of `factor`."""
    totals = ChannelTotals()
    for number, field in enumerate(msgspec.structs.fields(ChannelTotals), start=1):
        value = getattr(totals, field.name)
        if type(value) is int:
            setattr(totals, field.name, number * factor)
        elif isinstance(value, Histogram):
            for _ in range(number * factor):
                value.observe(number)
    return totals
