"""Maps ids and frames to 64-bit integers, so that state and digests stay small."""

from __future__ import annotations

import mmh3

from sds_core.native import native


@native
def fingerprint(data: str | bytes) -> int:
    """64-bit fingerprint of an id or a frame, as a signed integer.

    The fingerprint is the first half of MurmurHash3 x64_128 with seed 0. It is not
    simply the first bytes of the id, because the author of an id can choose these.
    """
    return mmh3.hash64(data)[0]
