"""Limits on the CPU time and memory of a channel. Only hostile traffic reaches them.

The monitor counts the entries that it drops because of a limit (docs/figures.md, 2).
"""

from __future__ import annotations

from enum import StrEnum

MOST_HISTORY = 500
"""Maximum number of entries read from a history.

If a history has more, its last entries are read. js-waku sends 200 entries.
"""

MOST_REQUESTS = 100
"""Maximum number of repair requests read from a frame.

SDS libraries send up to three requests in a frame.
"""

MANY_UNSEEN = 5_000
"""If a channel has this number of unseen ids, a frame adds at most `MOST_UNSEEN`.

If the channel has fewer, a frame adds at most `MANY_UNSEEN` unseen ids. An unseen id is
named in a causal history, but no tap has seen its message.
"""

MOST_UNSEEN = 20
"""If a channel has `MANY_UNSEEN` unseen ids, a frame adds at most this number.

The number is sufficient even if a tap misses 95 % of a channel's messages. Then each
frame that the tap sees names 19 new unseen ids on average.
"""

MOST_SEGMENT_SETS = 100
"""Maximum number of incomplete segmented messages that a channel tracks.

The library nim-segmentation has the same limit. A channel also tracks at most this
number of complete segmented messages.
"""

MOST_TAPS = 50
"""Maximum number of taps that a channel distinguishes in the retention window.

Each further tap counts as unknown.
"""


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
