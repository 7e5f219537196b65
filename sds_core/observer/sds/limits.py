"""Limits on the cost of a frame; only hostile traffic reaches them.

Dropped entries are counted (docs/figures.md, 2).
"""

from __future__ import annotations

from enum import StrEnum

MOST_HISTORY = 500
"""Maximum number of last entries of a history that are read; js-waku sends 200."""

MOST_REQUESTS = 100
"""Maximum number of repair requests read from a frame; libraries send three."""

MANY_UNSEEN = 5_000
"""If a channel has this number of unseen ids, a frame adds at most `MOST_UNSEEN`."""

MOST_UNSEEN = 20
"""From `MANY_UNSEEN` on, a frame adds at most this number of unseen ids.

A tap that misses 95 % of a channel's messages sees 19 unseen ids in each frame.
"""

MOST_SEGMENT_SETS = 100
"""Maximum segmented messages of a channel that are tracked until they are complete.

Complete messages have a separate limit with the same number. nim-segmentation also
reassembles at most this number of messages at the same time.
"""

MOST_TAPS = 50
"""Maximum number of taps that are distinguished per channel within the window."""


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
