"""Pictures of events: each participant and each tap has a lane with marks.

Templates draw marks in percent of the width. A stylesheet can thus zoom: the picture
gets wider, while texts and marks keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar, Literal, NamedTuple

_EDGE = 8.0
_TICK_APART = 18.0
"""Width that a label needs on a phone, in percent of the picture's width."""
_NUMBER_APART = 7.0
"""At twice the width (a desktop), labels and numbers appear one zoom step earlier."""


class LaneEvent(NamedTuple):
    """An event that is drawn.

    Attributes:
        at_ms: Time of the event, Unix ms.
        lanes: Numbers of the event's lanes; the mark is on the first lane.
        tone: Class of the mark.
        is_square: Whether the event is a conclusion instead of a frame.
        text: Text of the event's tooltip.
    """

    at_ms: int
    lanes: Sequence[int]
    tone: str
    is_square: bool
    text: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """A picture that shows events and links them to the rows of a table.

    Attributes:
        names: Label of each lane, from the top.
        events: The events in order of time.
        ticks: Text of the time of each event.
        anchor: Prefix of the row ids, which end in the row number.
        ZOOMS: Factors of the width; the first factor at which a text fits shows it.
        LANE_PX: Name of a lane height in the stylesheet.
    """

    title: str
    names: Sequence[str]
    events: Sequence[LaneEvent]
    ticks: Sequence[str]
    anchor: str
    note: str = ""
    ZOOMS: ClassVar = (1, 2, 4, 8, 16)
    LANE_PX: ClassVar = 34
    kind: Literal["lanes"] = "lanes"

    @property
    def places(self) -> list[float]:
        """Place of each event, percent of the width.

        Distances follow the logarithm of the time between events, so that both seconds
        and hours are visible. Events of the same moment are beside each other.
        """
        times = [event.at_ms for event in self.events]
        steps = (1 + math.log2(1 + (b - a) / 1000) for a, b in pairwise(times))
        sums = list(accumulate(steps, initial=0.0))
        scale = (100 - 2 * _EDGE) / (sums[-1] or 1)
        return [round(_EDGE + scale * one, 3) for one in sums][: len(times)]

    @property
    def labels(self) -> Iterator[tuple[float, str, int]]:
        """Place and text of each time label, and the first zoom that shows it."""
        shown: list[float] = []
        ticks = list(zip(self.places, self.ticks, strict=True))
        for zoom in self.ZOOMS:
            for place, text in ticks:
                if all(abs(place - one) * zoom >= _TICK_APART for one in shown):
                    shown.append(place)
                    yield place, text, zoom

    @property
    def numbers_from(self) -> int:
        """The smallest zoom at which the numbers of marks fit."""
        apart = 100 / (len(self.events) or 1)
        fitting = (zoom for zoom in self.ZOOMS if apart * zoom >= _NUMBER_APART)
        return next(fitting, self.ZOOMS[-1])
