"""Audit results about the mirror that the monitor reads (docs/figures.md, 8)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

UNKNOWN_CHANNEL = ""
"""Stands for all channels: the audit cannot identify a message's channel."""


class MirrorAudit(NamedTuple):
    """Messages that the mirror lacks, by the newest audit.

    Attributes:
        newest_missing_ms: Channel -> sender's time of its newest message that the
            mirror lacks, Unix ms.
    """

    newest_missing_ms: Mapping[str, int] = MappingProxyType({})

    def missing_ms(self, channel: str) -> int | None:
        """Return the time of the newest message that a channel may lack, Unix ms.

        None if the mirror is complete according to the audit.
        """
        known = self.newest_missing_ms
        found = [known[one] for one in (channel, UNKNOWN_CHANNEL) if one in known]
        return max(found, default=None)


NO_AUDIT = MirrorAudit()
"""No audit exists, or it found nothing missing."""
