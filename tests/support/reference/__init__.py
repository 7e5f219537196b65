"""The figures of a channel, computed slowly and obviously from all its records.

Written from docs/figures.md, not from the code: nothing is kept from one record to the
next, every figure looks through the whole list. For traffic shorter than the horizon
(3600 s) and within the limits of what is remembered.

Where that page leaves a choice, this follows it (all records have a hash, or none):
- a gap's time runs from the first naming after the warm-up;
- filters are evidence about a gap from the frame that names it first after the
  warm-up on;
- opportunities are frames after the message in topic order;
- without hashes only the latest broadcast of the same bytes is compared;
- a filter says nothing about messages of the other dialect;
- a frame that was named before it was seen shows nothing that its sender lacks;
- a filter of another size is one that rolled over;
- a roll-over that leaves as many bits set shows by four ids: the first three, and the
  newest, that the participant's newest filters were the first to show.
"""

from __future__ import annotations

from tests.support.reference.figures import Reference

__all__ = ["Reference"]
