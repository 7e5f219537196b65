"""The records of taps for one channel, in the order of the topic (docs/figures.md, 2).

Each record refers to its transmission, which identifies the copy and the message.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter
from typing import NamedTuple

from sds_core.message_channel.events import Cause
from sds_core.simulation.truth.composition import Composition
from sds_core.wire import Dialect, FrameKind, PartSizes

HORIZON_MS = 3_600_000
"""Evidence about a message counts only this long after the first copy, ms."""

REPAIR_WINDOWS_MS = {Dialect.SPEC: 135_000, Dialect.NIM: 315_000}
"""Maximum time from a request to its response, ms: T_max + sweep + transport."""


class Copy(enum.Enum):
    """How a frame that is not a replica relates to previous frames."""

    FIRST = enum.auto()
    REBROADCAST = enum.auto()
    COLLISION = enum.auto()


class ShownRecord(NamedTuple):
    """One record of the topic; `number` identifies the transmission.

    `SeenFrame` explains the other attributes.
    """

    at_ms: int
    clock_ms: int
    number: int
    cause: Cause
    composition: Composition


@dataclass(frozen=True, slots=True, eq=False)
class SeenFrame:
    """A frame that is not a replica.

    Attributes:
        index: index among the frames of the channel, in topic order.
        at_ms: record time, Unix ms; latencies are differences of record times.
        clock_ms: the channel's clock when the frame is read, Unix ms. Deadlines are
            compared with this clock.
        cause: why the frame was sent; in reality, only the sender knows this.
        is_old: whether the frame's message was first seen more than `HORIZON_MS` ago.
            The history and the filter of an old frame show nothing new, because they
            are as old as the message.
    """

    index: int
    at_ms: int
    clock_ms: int
    copy: Copy
    cause: Cause
    composition: Composition
    is_old: bool = False


_index = attrgetter("index")
_clock_ms = attrgetter("clock_ms")


class TapView:
    """The frames of one channel.

    Attributes:
        began_ms: the clock at the first record; None if no record exists.
        sizes: part sizes, in bytes, of each frame that is not a replica.
        frames: frames in topic order, without replicas.
        messages: first copies of content, by id, in topic order.
        shown: first copies of content and of nim-sds sync frames, by id. Histories name
            these sync frames, and participants repair them.
        first_copies: for each known sender, the first copies of its frames of all
            kinds.
        copies: for each id, the first copy and its rebroadcasts.
        namings: for each id, the frames that name the id in their causal history,
            except old frames.
        requests: for each id, the frames that request the id.
    """

    def __init__(self, records: Iterable[ShownRecord]) -> None:
        self.began_ms: int | None = None
        self.kinds: Counter[FrameKind] = Counter()
        self.sizes: list[PartSizes] = []
        self.replicas = 0
        self.frames: list[SeenFrame] = []
        self.messages: dict[str, SeenFrame] = {}
        self.shown: dict[str, SeenFrame] = {}
        self.first_copies: defaultdict[str, list[SeenFrame]] = defaultdict(list)
        self.copies: defaultdict[str, list[SeenFrame]] = defaultdict(list)
        self.namings: defaultdict[str, list[SeenFrame]] = defaultdict(list)
        self.requests: defaultdict[str, list[SeenFrame]] = defaultdict(list)
        # For each id, the newest sync frame that is not a rebroadcast.
        self._syncs: dict[str, SeenFrame] = {}
        numbers: set[int] = set()
        for record in records:
            if self.began_ms is None:
                self.began_ms = record.clock_ms
            if record.number in numbers:
                self.replicas += 1
            else:
                numbers.add(record.number)
                self._take(record)

    def between(self, first_ms: int, last_ms: int) -> Sequence[SeenFrame]:
        """Return the frames from `first_ms` to `last_ms` inclusive, except old ones."""
        begin = bisect_left(self.frames, first_ms, key=_clock_ms)
        end = bisect_right(self.frames, last_ms, key=_clock_ms)
        return [frame for frame in self.frames[begin:end] if not frame.is_old]

    def active_others(self, message: SeenFrame) -> Iterator[str]:
        """Yield the other participants that were active when a message was first seen.

        A participant was active if a tap recorded the first copy of one of the
        participant's messages at most `HORIZON_MS` before `message`.
        """
        begin_ms = message.at_ms - HORIZON_MS
        for participant, frames in self.first_copies.items():
            if participant == message.composition.sender:
                continue
            count = bisect_left(frames, message.index, key=_index)
            earlier = (frames[place] for place in range(count - 1, -1, -1))
            # A frame's record time never exceeds its clock time.
            late = takewhile(lambda frame: frame.clock_ms >= begin_ms, earlier)
            if any(begin_ms <= frame.at_ms < message.at_ms for frame in late):
                yield participant

    def latest_request(self, message_id: str, before: SeenFrame) -> SeenFrame | None:
        """Return the latest frame that requests an id and precedes `before`."""
        asking = self.requests.get(message_id, [])
        place = bisect_left(asking, before.index, key=_index)
        return asking[place - 1] if place else None

    def is_requested(self, frame: SeenFrame) -> bool:
        """Return whether a frame is in the window of the latest request for its id."""
        latest = self.latest_request(frame.composition.message_id, frame)
        return latest is not None and frame.clock_ms <= window_end_ms(latest)

    def _take(self, record: ShownRecord) -> None:
        at_ms, clock_ms, _, cause, composition = record
        self.kinds[composition.kind] += 1
        self.sizes.append(composition.sizes)
        message_id = composition.message_id
        copy, first = self._copy_of(composition)
        is_old = first is not None and clock_ms > first.clock_ms + HORIZON_MS
        frame = SeenFrame(
            len(self.frames), at_ms, clock_ms, copy, cause, composition, is_old
        )
        self.frames.append(frame)
        if copy is Copy.FIRST and composition.sender:
            self.first_copies[composition.sender].append(frame)
        if composition.has_known_id and copy is not Copy.COLLISION:
            self.shown.setdefault(message_id, frame)
            self.copies[message_id].append(frame)
        if copy is Copy.FIRST:
            if composition.kind is FrameKind.CONTENT:
                self.messages[message_id] = frame
            elif composition.has_known_id:
                self._syncs[message_id] = frame
        if not is_old:
            for named in {named.message_id for named in composition.history}:
                self.namings[named].append(frame)
        for requested in composition.requests:
            self.requests[requested].append(frame)

    def _copy_of(self, composition: Composition) -> tuple[Copy, SeenFrame | None]:
        """Return how a frame relates to previous frames, and the frame's first copy."""
        first = None
        if composition.kind is FrameKind.CONTENT:
            first = self.messages.get(composition.message_id)
        elif composition.has_known_id:
            first = self._syncs.get(composition.message_id)
        if first is None:
            return Copy.FIRST, None
        copy = _further_copy(first.composition, composition)
        if composition.kind is FrameKind.SYNC and copy is Copy.COLLISION:
            return Copy.FIRST, None
        return copy, first


def window_end_ms(request: SeenFrame) -> int:
    """Return the last time at which a copy counts as a response, Unix ms."""
    return request.clock_ms + REPAIR_WINDOWS_MS[request.composition.dialect]


def _further_copy(first: Composition, later: Composition) -> Copy:
    same = (first.sender, first.lamport) == (later.sender, later.lamport)
    return Copy.REBROADCAST if same else Copy.COLLISION
