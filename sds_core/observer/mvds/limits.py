"""What strangers may make a view remember (docs/figures.md, 14).

Only hostile traffic, or groups of hundreds of peers, reach these limits. What one of
them leaves out is counted.
"""

from __future__ import annotations

from enum import StrEnum

MOST_RECORDS = 200
"""Records of one payload that are followed, the first ones, repetitions included.
Deployed nodes send less than a tenth as many; a payload of 150 kB has room for 4,200
ids, and each costs as much as a short payload."""

MOST_PEERS = 500
"""Peers of one message id."""

MOST_PAIRS = 2_000
"""Pairs of sender and receiver of one message id."""

MOST_LINKS = 200_000
"""Peers and pairs of all message ids of a view."""

MOST_GROUPS = 500
"""Groups of a view, those without a group among them."""

OTHER_GROUPS = "other_groups"
"""Group in which the groups beyond the limit count."""

MOST_TAPS = 50
"""Taps that showed a group, within the horizon."""

MOST_SHOWN = 100
"""Payloads with the same content that copies are compared with, the latest."""


class LeftOut(StrEnum):
    """What a limit leaves out: keys of `GroupTotals.left_out`."""

    RECORD = "record"
    PEER = "peer"
    PAIR = "pair"
    GROUP = "group"
