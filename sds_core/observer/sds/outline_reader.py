"""Adds frames to the digests of their channels, without decoding the frames."""

from __future__ import annotations

from dataclasses import dataclass, field

from sds_core.native import native
from sds_core.observer.record import Arrival
from sds_core.observer.sds.digest import ChannelDigester
from sds_core.observer.sds.digest_parts import usable_id
from sds_core.observer.sds.limits import MOST_HISTORY
from sds_core.wire.outline import outline_of


@native
@dataclass(slots=True)
class OutlineReader:
    """Adds frames to digests from the frames' outlines; see `kinds.FrameReader`."""

    _partition: int
    _digesters: dict[str, ChannelDigester]
    _found: dict[bytes, ChannelDigester] = field(default_factory=dict)

    def add(self, key: bytes | None, value: bytes, arrival: Arrival) -> int:
        """Add the frame of a record to its digest; see `kinds.FrameReader.add`."""
        outline = outline_of(value, MOST_HISTORY)
        if outline is None:
            return 0
        channel_id = outline.channel_id
        if key is not None and key != channel_id:
            return 0
        digester: ChannelDigester | None = self._found.get(channel_id)
        if digester is not None:
            return digester.add_outline(outline, value, arrival)
        name = usable_id(channel_id)
        if name is None:
            return 0
        digester = self._digesters.get(name)
        if digester is None:
            digester = ChannelDigester(self._partition)
        kept = digester.add_outline(outline, value, arrival)
        if kept:
            self._digesters[name] = self._found[channel_id] = digester
        return kept
