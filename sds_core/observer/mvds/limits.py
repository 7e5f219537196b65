"""Limits on what a view stores, because senders are untrusted (docs/figures.md, 14).

Only hostile traffic or groups of hundreds of peers reach these limits. Entries that the
limits drop are counted.
"""

from __future__ import annotations

from enum import StrEnum

MOST_RECORDS = 200
"""Maximum number of tracked records per payload; later records are dropped.

Repeated records count too. Deployed nodes send fewer than 20 records per payload, but a
payload of 150 kB has room for about 4,500 ids. Each id costs as much CPU time as a
short payload.
"""

MOST_PEERS = 500
"""Maximum number of peers of one message id."""

MOST_PAIRS = 2_000
"""Maximum number of pairs of sender and receiver of one message id."""

MOST_LINKS = 200_000
"""Maximum total number of peers and pairs for all message ids of a view."""

MOST_GROUPS = 500
"""Maximum number of groups of a view, including the group for unknown groups."""

OTHER_GROUPS = "other_groups"
"""Group in which all groups beyond the limit are counted."""

MOST_TAPS = 50
"""Maximum number of taps that are tracked for a group in the retention window."""

MOST_SHOWN = 100
"""Maximum number of remembered payloads with equal content between the same peers.

A further payload is compared only with these payloads.
"""


class LeftOut(StrEnum):
    """Kinds of entries that limits drop: keys of `GroupTotals.left_out`."""

    RECORD = "record"
    PEER = "peer"
    PAIR = "pair"
    GROUP = "group"
