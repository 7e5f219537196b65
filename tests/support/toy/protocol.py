"""Toy: players make moves in rooms. All that a protocol brings, in the smallest form.

The value of a record is ``room/player/points`` as text; points are a whole number.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from sds_core.observer import blob
from sds_core.observer.figure_table import FigureTable, Names
from sds_core.observer.figures import Figure, Unit, counter
from sds_core.observer.forgotten import Forgotten
from sds_core.observer.kinds import Kind, Outlet, TrafficProtocol
from sds_core.observer.record import Arrival, Headers
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.verdict import Verdict
from sds_core.wire import UndecodableFrame

BLOB_VERSION = 1
QUIET_MS = 60_000
"""A room without a move for longer is quiet."""


# --- decoder


class ToyReason(enum.StrEnum):
    """Dead-letter reasons of this protocol."""

    TOY_ERROR = "toy_error"


class NotAMove(UndecodableFrame):
    """The value is not a move."""

    reason = ToyReason.TOY_ERROR
    text = "{value!r:.80} is not a move"

    def __init__(self, value: bytes) -> None:
        super().__init__(value)
        self.value = value


class Move(NamedTuple):
    """One frame: a player makes points in a room."""

    room: str
    player: str
    points: int


def decode(value: bytes, _: Headers) -> Move:
    """Read a move.

    Raises:
        NotAMove: The value is not one.
    """
    try:
        room, player, points = value.decode().split("/")
        return Move(room, player, int(points))
    except ValueError:
        raise NotAMove(value) from None


def fits_key(key: bytes, move: Move) -> bool:
    """The key of a record is the room."""
    return key == move.room.encode()


def room_of(move: Move) -> str:
    """There is a view for each room."""
    return move.room


# --- digest


class RoomDigest(msgspec.Struct, array_like=True):
    """Moves in one room in one chunk of records: (event time in ms, points, tap)."""

    moves: list[tuple[int, int, str]]


class RoomDigester:
    """Collects the moves in one room."""

    def __init__(self, _: int) -> None:
        self._moves: list[tuple[int, int, str]] = []

    def add(self, frame: Move, value: bytes, arrival: Arrival) -> None:
        """Add a move."""
        del value
        self._moves.append((arrival.time_ms, frame.points, arrival.observer))

    def finish(self) -> RoomDigest:
        """Return the digest of all moves."""
        return RoomDigest(self._moves)


# --- view


class RoomTotals(msgspec.Struct, array_like=True):
    """Figures of one room."""

    first_event_ms: int | None = None
    last_event_ms: int | None = None
    clock_ms: int = 0
    moves: int = 0
    points: int = 0
    verdict: Verdict = Verdict.WARMING_UP
    verdict_reason: str = "warming_up"
    verdict_since_ms: int | None = None
    observers: list[str] = []

    def verdict_without(
        self, excused: Callable[[int, int], bool], settings: ObserverSettings
    ) -> tuple[Verdict, str]:
        """Nothing is ever found wrong with a room."""
        del excused, settings
        return self.verdict, self.verdict_reason


class RoomState(msgspec.Struct, array_like=True):
    """Nothing is stored beside the totals."""


class RoomView:
    """Counts moves and points in one room; a room may fall quiet."""

    def __init__(
        self, settings: ObserverSettings = DEFAULTS, totals: RoomTotals | None = None
    ) -> None:
        del settings
        self.totals = totals or RoomTotals()

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> RoomView:
        """Restore the view."""
        with blob.opened(version, data, BLOB_VERSION, 1) as body:
            return cls(settings, blob.unpack(body, RoomTotals, RoomState)[0])

    def to_blob(self) -> bytes:
        """Pack the view."""
        return blob.pack(self.totals, RoomState())

    def apply(self, digests: Iterable[RoomDigest], clock_ms: int) -> list[object]:
        """Count the next moves; no event leaves a room."""
        totals = self.totals
        for digest in digests:
            for time_ms, points, observer in digest.moves:
                totals.moves += 1
                totals.points += points
                totals.first_event_ms = min(totals.first_event_ms or time_ms, time_ms)
                totals.last_event_ms = max(totals.last_event_ms or time_ms, time_ms)
                if observer and observer not in totals.observers:
                    totals.observers.append(observer)
        totals.clock_ms = clock_ms
        self._judge()
        return []

    def forget(self) -> list[object]:
        """Forget all moves; what was counted stays in sums."""
        totals, self.totals = self.totals, RoomTotals()
        return [Forgotten(blob.pack_totals(totals))]

    @property
    def is_forgotten(self) -> bool:
        """Whether nobody has moved since the begin, or since it was forgotten."""
        return not self.totals.moves

    @property
    def next_deadline_ms(self) -> int | None:
        """When the room falls quiet."""
        if self.totals.last_event_ms is None or self.totals.verdict is Verdict.QUIET:
            return None
        return self.totals.last_event_ms + QUIET_MS

    def _judge(self) -> None:
        totals = self.totals
        if totals.last_event_ms is None:
            return
        quiet = totals.clock_ms - totals.last_event_ms > QUIET_MS
        verdict = Verdict.QUIET if quiet else Verdict.OK
        if verdict is not totals.verdict:
            totals.verdict, totals.verdict_reason = verdict, verdict.value
            totals.verdict_since_ms = totals.clock_ms


# --- figures

FIGURES = FigureTable(
    RoomTotals,
    Names(label="room", one="room", many="rooms"),
    [
        Figure(
            "moves",
            "Moves in the room.",
            report=("moves",),
            series=(counter("toy_moves_total").of(),),
            group="Game",
            heading="Moves",
            column=1,
        ),
        Figure(
            "points",
            "Points of all moves.",
            report=("points",),
            series=(counter("toy_points_total").of(),),
            group="Game",
            heading="Points",
            column=2,
        ),
        Figure(
            "verdict",
            "Health of the room.",
            Unit.WORD,
            report=("verdict",),
        ),
    ],
    groups=("Game",),
)


# --- the registration's entry


def remains_of(totals: RoomTotals) -> RoomTotals:
    """Return the counts of a forgotten room."""
    return RoomTotals(moves=totals.moves, points=totals.points)


ROOMS: Kind[RoomDigest, RoomTotals, object] = Kind(
    prefix="toy",
    digest=RoomDigest,
    view=RoomView,
    totals=RoomTotals,
    blob_version=BLOB_VERSION,
    label_file="toy-labels.json",
    in_channel_table=True,
    outlets={Forgotten: Outlet.FORGOTTEN},
    figures=FIGURES,
    remains=remains_of,
)

TOY: TrafficProtocol[Move] = TrafficProtocol(
    name="toy",
    decode=decode,
    fits_key=fits_key,
    view_name=room_of,
    new_digester=RoomDigester,
    kind=ROOMS,
)
