"""Maps ids and frames to 64-bit integers, so that state and digests stay small."""

from __future__ import annotations

import mmh3

from sds_core.native import native


@native
def fingerprint(data: str | bytes) -> int:
    """64-bit fingerprint of an id or a frame, as a signed integer.

    The fingerprint is the first half of MurmurHash3 x64_128, seed 0. The first bytes of
    an id would be no substitute, because the author of the id can choose these bytes.
    """
    return mmh3.hash64(data)[0]
