"""Limits on what an MVDS view stores (docs/figures.md, 14).

Limits are necessary, because senders are untrusted. Only hostile traffic, or groups of
hundreds of peers, reach them. The totals count what limits drop, except at `MOST_TAPS`
and `MOST_SHOWN`.
"""

from __future__ import annotations

from enum import StrEnum

MOST_RECORDS = 200
"""Maximum number of tracked records per payload; later records are dropped.

If a record is repeated, each repetition counts towards the limit. Deployed nodes send
fewer than 20 records per payload. However, a payload of 150 kB has room for about 4,500
ids. An id takes as much CPU time as a short payload.
"""

MOST_PEERS = 500
"""Maximum number of peers of one message id."""

MOST_PAIRS = 2_000
"""Maximum number of pairs of sender and receiver of one message id."""

MOST_LINKS = 200_000
"""Maximum total number of peers and pairs for all message ids of a view."""

MOST_GROUPS = 500
"""Maximum number of groups of a view, `UNKNOWN_GROUP` included, `OTHER_GROUPS` not."""

OTHER_GROUPS = "other_groups"
"""Name of the group that counts the messages of all groups beyond `MOST_GROUPS`."""

MOST_TAPS = 50
"""Maximum number of taps that a view tracks for each group in the retention window."""

MOST_SHOWN = 100
"""Maximum number of earlier payloads with which a new payload is compared.

These are the newest payloads with the same content, sender and receiver.
"""


class LeftOut(StrEnum):
    """Kinds of entries that limits drop: keys of `GroupTotals.left_out`."""

    RECORD = "record"
    PEER = "peer"
    PAIR = "pair"
    GROUP = "group"
