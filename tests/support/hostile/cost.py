"""Processor time of frames in reader and view, as the job handles them."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from itertools import zip_longest
from statistics import median

from sds_core.observer.record import Arrival
from sds_core.observer.sds.channel_view import ChannelView
from sds_core.observer.sds.digest import ChannelDigester
from sds_core.wire import decode
from tests.support.digests import packed, unpacked
from tests.support.frames import START_MS
from tests.support.hostile.shapes import Play, Timed

_ROUNDS = 3


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
        digest = unpacked(packed(digester.finish()))
        return len(self.view.apply([digest], START_MS + frames[-1].at_ms))


def cost(play: Play) -> float:
    """Median processor time of the frames that should hurt, seconds each."""
    return median(_spent(play)[0])


def times(play: Play, normal: Play) -> float:
    """Cost of the frames that should hurt, as a multiple of that of normal ones.

    They take turns, so that other work on the machine makes both dearer. It only ever
    adds, so each counts by the least of its rounds.
    """
    rounds = [_spent(play, normal) for _ in range(_ROUNDS)]
    hurt, usual = (min(map(median, some)) for some in zip(*rounds, strict=True))
    return hurt / usual


def _spent(*plays: Play) -> list[list[float]]:
    """Processor time of each frame that should hurt, by play; the plays take turns."""
    handlers = [_prepared(play) for play in plays]
    spent: list[list[float]] = [[] for _ in plays]
    gc.collect()
    gc.disable()
    try:
        for frames in zip_longest(*(play.hurt for play in plays)):
            for handler, frame, durations in zip(handlers, frames, spent, strict=True):
                if frame is not None:
                    begun = time.process_time()
                    handler.take([frame])
                    durations.append(time.process_time() - begun)
    finally:
        gc.enable()
    return spent


def _prepared(play: Play) -> Handler:
    """A handler that has taken the frames before those that should hurt."""
    handler = Handler()
    for first in range(0, len(play.prepare), 500):
        handler.take(play.prepare[first : first + 500])
    return handler
