"""Values that implementations write, and why others are undecodable."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from sds_core.wire import Reason, UndecodableFrame, decode
from tests.support.wire.raw import entry, field

# What npm @waku/sds 0.0.8 writes.
JS_CONTENT = bytes.fromhex(
    "0a03736e6412036d69641a026368508080b3c19c335a0b0a0168120201021a0268736201096a08"
    "0a0272721a027273a201026869"
)
JS_SYNC = bytes.fromhex("0a03736e641201731a0263685005")

# What nim-sds writes: it sends no sender id unless it has one, and content and filter
# even if they are empty.
NIM_CONTENT = b"".join(
    [
        field(1, "mid"),
        field(2, 1_760_000_000),
        field(3, entry("h", b"\x01\x02")),
        field(3, entry("i")),
        field(4, "ch"),
        field(5, b"hi"),
        field(6, b"\x09"),
        field(7, "snd"),
        field(13, entry("rr", sender_id="rs")),
    ]
)
NIM_SYNC = b"".join(
    [field(1, "s"), field(2, 5), field(4, "ch"), field(5, b""), field(6, b"")]
)

CANONICAL = {
    "js_content": JS_CONTENT,
    "js_sync": JS_SYNC,
    "nim_content": NIM_CONTENT,
    "nim_sync": NIM_SYNC,
}

lamports = st.integers(min_value=0, max_value=2**64 - 1)


def reason_of(value: bytes) -> Reason:
    """Return why `value` is undecodable."""
    with pytest.raises(UndecodableFrame) as caught:
        decode(value)
    return caught.value.reason
