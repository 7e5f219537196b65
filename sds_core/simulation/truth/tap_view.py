"""The records of taps for one channel, in the order of the topic (docs/figures.md, 2).

Each record contains the number of the transmission that it shows. Records with the same
number are replicas of each other.
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
"""Time after a message's first copy in which evidence about the message counts, ms."""

REPAIR_WINDOWS_MS = {Dialect.SPEC: 135_000, Dialect.NIM: 315_000}
"""Maximum time from a request to its response, for each dialect, ms.

The time is the sum of T_max, the interval of sweeps, and the transport time.
"""


class Copy(enum.Enum):
    """How a frame that is not a replica relates to previous frames with its id."""

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
        cause: why the frame was sent. Outside of a simulation, only the sender knows
            this.
        is_old: whether the frame's message was first seen more than `HORIZON_MS` before
            this frame. The history and the filter of an old frame show nothing new,
            because they are as old as the message.
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
        began_ms: the channel's clock at the first record, Unix ms; None if no record
            exists.
        sizes: part sizes, in bytes, of each frame that is not a replica.
        frames: frames in topic order, without replicas.
        messages: first copies of content messages, by id, in topic order.
        shown: for each id, the first content frame or sync frame of nim-sds with the
            id. Histories name sync frames of nim-sds, and participants repair them.
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
        """Return the frames with a clock time from `first_ms` to `last_ms` inclusive.

        Old frames (`is_old`) are omitted.
        """
        begin = bisect_left(self.frames, first_ms, key=_clock_ms)
        end = bisect_right(self.frames, last_ms, key=_clock_ms)
        return [frame for frame in self.frames[begin:end] if not frame.is_old]

    def active_others(self, message: SeenFrame) -> Iterator[str]:
        """Yield the participants that were active when a message was first seen.

        The message's sender is omitted. A participant was active if a tap recorded a
        first copy from it, of any kind, at most `HORIZON_MS` before `message`.
        """
        begin_ms = message.at_ms - HORIZON_MS
        for participant, frames in self.first_copies.items():
            if participant == message.composition.sender:
                continue
            count = bisect_left(frames, message.index, key=_index)
            earlier = (frames[place] for place in range(count - 1, -1, -1))
            # A frame's record time is at most its clock time. So a frame whose clock
            # time is before `begin_ms` cannot count, and no earlier frame can.
            late = takewhile(lambda frame: frame.clock_ms >= begin_ms, earlier)
            if any(begin_ms <= frame.at_ms < message.at_ms for frame in late):
                yield participant

    def latest_request(self, message_id: str, before: SeenFrame) -> SeenFrame | None:
        """Return the latest frame that requests an id and precedes `before`."""
        asking = self.requests.get(message_id, [])
        place = bisect_left(asking, before.index, key=_index)
        return asking[place - 1] if place else None

    def is_requested(self, frame: SeenFrame) -> bool:
        """Return whether a frame is in the repair window of a request for its id.

        Only the latest request before the frame counts.
        """
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
        """Return how a frame relates to previous frames, and the first copy of its id.

        If the frame itself is a first copy, None replaces the first copy.
        """
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
    """Return the clock time until which a copy counts as a response, Unix ms."""
    return request.clock_ms + REPAIR_WINDOWS_MS[request.composition.dialect]


def _further_copy(first: Composition, later: Composition) -> Copy:
    same = (first.sender, first.lamport) == (later.sender, later.lamport)
    return Copy.REBROADCAST if same else Copy.COLLISION
