"""Processor time of frames in reader and view, as the job handles them."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from statistics import median

from sds_core.observer.record import Arrival
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.digest import ChannelDigest, ChannelDigester
from sds_core.wire import decode
from tests.support.frames import START_MS
from tests.support.hostile.shapes import Play, Timed


class Handler:
    """One channel's frames, each a batch of its own.

    Attributes:
        view: The channel's view.
        events: Number of bytes of all events that left the view.
    """

    def __init__(self) -> None:
        self.view = ChannelView()
        self._offset = 0

    def take(self, frames: Sequence[Timed]) -> int:
        """Read frames as one chunk and apply them; returns the number of events."""
        digester = ChannelDigester(0)
        for at_ms, value in frames:
            time_ms = START_MS + at_ms
            arrival = Arrival(self._offset, time_ms, time_ms)
            digester.add(decode(value), value, arrival)
            self._offset += 1
        digest = ChannelDigest.from_bytes(digester.finish().to_bytes())
        return len(self.view.apply([digest], START_MS + frames[-1].at_ms))


def cost(play: Play) -> float:
    """Median processor time of the frames that should hurt, seconds each."""
    handler = Handler()
    for first in range(0, len(play.prepare), 500):
        handler.take(play.prepare[first : first + 500])
    spent = []
    gc.collect()
    gc.disable()
    try:
        for frame in play.hurt:
            begun = time.process_time()
            handler.take([frame])
            spent.append(time.process_time() - begun)
    finally:
        gc.enable()
    return median(spent)
