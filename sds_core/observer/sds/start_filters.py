"""Keeps the filters of the warm-up to recognise older ids (docs/figures.md, 6).

Causal histories of nim-sds are in the order of delivery. So in a history, an id from
before the start (the end of the warm-up) may follow ids from after the start. An id is
recognised as older if a filter from the warm-up holds it.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from sds_core.native import native
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.frame_filter import Filter
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.seen_frames import SeenFrame
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.wire import Dialect, count_set_bits

_MOST_SIZES = 2
"""Maximum number of filter sizes. For each size, one filter is stored.

A library uses only one size.
"""

_MOST_BYTES = 65_536
"""Maximum size of a stored filter, bytes. A nim-sds filter usually has 18,768 bytes."""


class StartFilter(msgspec.Struct, array_like=True):
    """The union of all filters of one size that were seen in the warm-up.

    Attributes:
        bits: Encoded bits in the bit order of nim-sds.
    """

    m_bits: int
    k: int
    bits: bytes


@native
@dataclass(slots=True)
class StartFilters:
    """Merges the filters that nim-sds sends during the warm-up."""

    _settings: RuleSettings
    _totals: ChannelTotals
    _filters: list[StartFilter]

    def in_warm_up(self, frame: SeenFrame) -> None:
        """Add the filter of a frame in the warm-up."""
        added = frame.filter
        if added is None or added.dialect is not Dialect.NIM:
            return
        if not self._add(added):
            self._totals.leave_out(LeftOut.START_FILTER)

    def held(self, message_id: str) -> bool:
        """Whether a warm-up filter holds an id; True may be a false positive."""
        return any(
            Filter(Dialect.NIM, one.m_bits, one.k, one.bits, 0).contains(message_id)
            for one in self._filters
        )

    def _add(self, added: Filter) -> bool:
        used_bytes = -(-added.m_bits // 64) * 8
        if used_bytes > _MOST_BYTES:
            return False
        size = added.m_bits, added.k
        same = [one for one in self._filters if (one.m_bits, one.k) == size]
        if not same and len(self._filters) >= _MOST_SIZES:
            return False
        bits = np.frombuffer(added.bits, np.uint8, used_bytes)
        if same:
            bits = bits | np.frombuffer(same[0].bits, np.uint8)
        joined = bits.tobytes()
        set_bits = count_set_bits(Dialect.NIM, joined, added.m_bits)
        # A filter with too many false positives would also seem to hold newer ids, so
        # gaps would stay undetected.
        union = Filter(Dialect.NIM, *size, joined, set_bits)
        if union.false_positive_rate() > self._settings.saturated_rate:
            return False
        if same:
            same[0].bits = joined
        else:
            self._filters.append(StartFilter(*size, joined))
        return True
