"""Sets of messages for properties: few times and hashes, so that many are shared."""

from __future__ import annotations

from hypothesis import strategies as st

from sds_core.prolly.item import Item

FAN_OUTS = st.sampled_from([2, 3, 4, 16])
"""Small ones make high trees of few messages."""

ITEMS = st.builds(
    lambda time_ns, first, last: Item(time_ns, bytes([first, *bytes(30), last])),
    st.integers(1, 12),
    st.integers(0, 255),
    st.sampled_from([0, 7]),
)
"""Many have the same time, and some hashes end in zeros."""

SETS = st.sets(ITEMS, max_size=60)
