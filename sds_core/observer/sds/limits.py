"""Limits on the cost of a frame, which only hostile traffic reaches.

Dropped entries are counted (docs/figures.md, 2).
"""

from __future__ import annotations

from enum import StrEnum

MOST_HISTORY = 500
"""Maximum entries of a history that are read, the last ones; js-waku sends 200."""

MOST_REQUESTS = 100
"""Maximum repair requests of a frame that are read, the first; libraries send three."""

MANY_UNSEEN = 5_000
"""Number of named, unseen ids of a channel above which a frame adds few."""

MOST_UNSEEN = 20
"""Maximum number of these that a frame then adds.

A tap that misses 95 % of a channel's messages sees 19 in each frame.
"""

MOST_SEGMENT_SETS = 100
"""Maximum segmented messages of a channel that are tracked until they are complete.

The same number of complete ones is tracked; nim-segmentation reassembles as many at
once.
"""

MOST_TAPS = 50
"""Maximum number of taps of a channel that are distinguished within the window."""


class LeftOut(StrEnum):
    """Kinds of dropped entries: keys of `ChannelTotals.left_out`."""

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
