"""Limits on the cost of a frame; only hostile traffic reaches them.

Entries dropped by a limit are counted (docs/figures.md, 2).
"""

from __future__ import annotations

from enum import StrEnum

MOST_HISTORY = 500
"""A history's last entries are read, up to this number; js-waku sends 200."""

MOST_REQUESTS = 100
"""Maximum number of repair requests read from a frame; libraries send up to three."""

MANY_UNSEEN = 5_000
"""If a channel has this number of unseen ids, a frame adds at most `MOST_UNSEEN`."""

MOST_UNSEEN = 20
"""If a channel has `MANY_UNSEEN` unseen ids, a frame adds at most this number.

A tap that misses 95 % of a channel's messages sees 19 unseen ids in each frame.
"""

MOST_SEGMENT_SETS = 100
"""Maximum number of incomplete segmented messages that a channel tracks.

nim-segmentation uses the same number. A separate limit with this number applies to
complete messages.
"""

MOST_TAPS = 50
"""Maximum number of taps that a channel distinguishes in the retention window."""


class LeftOut(StrEnum):
    """Kinds of entries that limits drop, used as keys of `ChannelTotals.left_out`."""

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
