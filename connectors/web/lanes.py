"""Pictures of events: each participant and each tap has a lane, and events are marks.

Templates position marks in percent of the picture's width. So a stylesheet can zoom:
it makes the picture wider, but texts and marks keep their size.
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
"""Width that a mark's number needs on a phone, in percent of the picture's width. A
desktop has twice the width, so labels and numbers appear one zoom step earlier."""


class LaneEvent(NamedTuple):
    """An event that is drawn.

    Attributes:
        at_ms: Time of the event, Unix ms.
        lanes: Numbers of the event's lanes; the mark is on the first of these lanes.
        tone: CSS class of the mark.
        is_square: Whether the mark is a square, because no tap recorded the event. The
            mark of a tap's event is a circle.
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
        ticks: Time of each event as text.
        anchor: Prefix of the ids of the table's rows. After the prefix, an id has a
            hyphen and the number of the row.
        ZOOMS: Factors by which a reader can zoom the width. A text is shown from the
            smallest factor at which it fits.
        LANE_PX: Height of a lane, pixels.
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
        """Place of each event, in percent of the width.

        The distance between two events grows with the logarithm of the time between
        them, so that both seconds and hours are visible.
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
