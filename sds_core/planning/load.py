"""Traffic that a monitor processes, in terms that determine its costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sds_core.observer.settings import DEFAULTS


@dataclass(frozen=True, slots=True)
class Load:
    """The traffic to process.

    Attributes:
        participants: Participants of each channel.
        frames_per_s: Frames per second of all channels, which have equal traffic.
        hours: Hours for which a channel remembers messages.
        frame_bytes: Mean bytes of a frame.
        trigger_s: Seconds of traffic in a batch.
    """

    channels: float
    participants: float
    frames_per_s: float
    hours: float
    frame_bytes: float
    trigger_s: float = 1.0

    def times(self, factor: float) -> Load:
        """Return the load of a multiple of the channels, each with the same traffic."""
        return replace(
            self,
            channels=self.channels * factor,
            frames_per_s=self.frames_per_s * factor,
        )

    @property
    def frames(self) -> float:
        """Frames of a batch."""
        return self.frames_per_s * self.trigger_s

    @property
    def touched(self) -> float:
        """Channels with a frame in a batch, if frames are independent."""
        return self.channels * -math.expm1(-self.frames / self.channels)

    @property
    def remembered(self) -> float:
        """Messages that a channel remembers; every frame counts as one."""
        seen = self.frames_per_s / self.channels * self.hours * 3_600
        return min(seen, DEFAULTS.remembered)
