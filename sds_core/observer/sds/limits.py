"""What one frame of a channel may cost: limits that only hostile traffic reaches.

What a limit leaves out is counted (docs/figures.md, 2).
"""

from __future__ import annotations

from enum import StrEnum

MOST_HISTORY = 500
"""Entries of one causal history that are read, the last ones; js-waku sends 200."""

MOST_REQUESTS = 100
"""Repair requests of one frame that are read, the first ones; libraries send three."""

MANY_UNSEEN = 5_000
"""Ids of a channel that are named and not seen, from which on a frame adds few."""

MOST_UNSEEN = 20
"""Number of these that a frame then adds, at most. A tap that misses 95 % of a
channel's messages sees 19 in each frame."""

MOST_SEGMENT_SETS = 100
"""Segmented messages of a channel that are followed until they are complete, and as
many complete ones; nim-segmentation reassembles as many at once."""

MOST_TAPS = 50
"""Maximum number of taps of a channel that are distinguished within the horizon."""


class LeftOut(StrEnum):
    """What a limit leaves out: keys of `ChannelTotals.left_out`."""

    HISTORY = "history_entry"
    UNSEEN = "unseen_id"
    REQUEST = "repair_request"
    SEARCH = "filter_search"
    DELIVERY = "delivery"
    PARTICIPANT = "participant"
    RESPONSE = "response_timing"
    SEGMENT_SET = "segment_set"
    START_FILTER = "start_filter"
    TAP = "tap"
