"""League: a toy protocol whose views are parts of groups.

The value of a record is ``league/match/points`` as text; points are a whole number. A
match belongs to one of `SHARDS` views, which are joined into leagues. A match without
points is an incident, until the match gets some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec

from sds_core.observer import blob
from sds_core.observer.figure_table import FigureTable, Names
from sds_core.observer.figures import (
    ChartShape,
    Figure,
    Line,
    Scale,
    Unit,
    counter,
    gauge,
)
from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.incidents import GroupIncident, Incident, IncidentKind
from sds_core.observer.kinds import Grouping, Kind, Outlet, TrafficProtocol
from sds_core.observer.minutes import MINUTE_MS, GroupMinute
from sds_core.observer.record import Arrival, Headers
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.summing import greatest, least, sum_totals
from sds_core.observer.verdict import Verdict
from tests.support.toy.protocol import NotAMove

SHARDS = 3
BLOB_VERSION = 1


class Match(NamedTuple):
    """One frame: a match of a league brings points."""

    league: str
    match: str
    points: int


def decode(value: bytes, _: Headers) -> Match:
    """Read a match.

    Raises:
        NotAMove: The value is none.
    """
    try:
        league, match, points = value.decode().split("/")
        return Match(league, match, int(points))
    except ValueError:
        raise NotAMove(value) from None


def fits_key(key: bytes, match: Match) -> bool:
    """The key of a record is the league."""
    return key == match.league.encode()


def view_of(match: Match) -> str:
    """The view that counts a match."""
    return str(fingerprint(match.match) % SHARDS)


def split(match: Match) -> Iterator[tuple[str, Match | None]]:
    """Give the match to one view, and to all others only its time."""
    for shard in map(str, range(SHARDS)):
        yield shard, match if shard == view_of(match) else None


class LeagueDigest(msgspec.Struct, array_like=True):
    """Frames: (clock and event time in ms, tap, and the match if it is ours)."""

    frames: list[tuple[int, int, str, tuple[str, str, int] | None]]


class LeagueDigester:
    """Collects the frames that one view gets."""

    def __init__(self, _: int) -> None:
        self._frames: list[tuple[int, int, str, tuple[str, str, int] | None]] = []

    def add(self, frame: Match | None, value: bytes, arrival: Arrival) -> None:
        """Add a match, or only its time."""
        del value
        match = None if frame is None else (frame.league, frame.match, frame.points)
        self._frames.append(
            (arrival.clock_ms, arrival.time_ms, arrival.observer, match)
        )

    def finish(self) -> LeagueDigest:
        """Return the digest of all frames."""
        return LeagueDigest(self._frames)


class LeagueTotals(msgspec.Struct, array_like=True):
    """Figures of one league, or of its part in one view."""

    first_event_ms: Annotated[int | None, least] = None
    last_event_ms: Annotated[int | None, greatest] = None
    clock_ms: Annotated[int, greatest] = 0
    matches: int = 0
    points: int = 0
    pointless: int = 0
    verdict: Verdict = Verdict.WARMING_UP
    verdict_reason: str = "warming_up"
    verdict_since_ms: int | None = None
    observers: list[str] = []

    def verdict_without(
        self, excused: Callable[[int, int], bool], settings: ObserverSettings
    ) -> tuple[Verdict, str]:
        """No evidence is ever excused."""
        del excused, settings
        return self.verdict, self.verdict_reason


class ShardTotals(msgspec.Struct, array_like=True):
    """The parts of leagues in one view."""

    leagues: dict[str, LeagueTotals] = {}


class ShardState(msgspec.Struct, array_like=True):
    """Beside the totals.

    Attributes:
        clock_ms: Admission time, Unix ms.
        changed: Leagues with other figures than at the end of the last minute.
        pointless: Begin of the incident of each match without points, by league.
    """

    clock_ms: int = 0
    changed: list[str] = []
    pointless: dict[str, dict[str, int]] = {}


class LeagueMinute(GroupMinute[LeagueTotals], array_like=True, tag="LeagueMinute"):
    """The part of a league at the end of one minute."""


class ShardView:
    """Counts the matches of one view, by league."""

    is_forgotten = False

    def __init__(
        self,
        settings: ObserverSettings = DEFAULTS,
        totals: ShardTotals | None = None,
        state: ShardState | None = None,
    ) -> None:
        del settings
        self.totals = totals or ShardTotals()
        self._state = state or ShardState()
        self._touched: set[str] = set()
        self._events: list[object] = []

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> ShardView:
        """Restore the view."""
        with blob.opened(version, data, BLOB_VERSION, 1) as body:
            return cls(settings, *blob.unpack(body, ShardTotals, ShardState))

    def to_blob(self) -> bytes:
        """Pack the view."""
        return blob.pack(self.totals, self._state)

    def apply(self, digests: Iterable[LeagueDigest], clock_ms: int) -> list[object]:
        """Count the next matches."""
        self._events, self._touched = [], set()
        frames = [frame for digest in digests for frame in digest.frames]
        for at_ms, time_ms, observer, match in sorted(frames, key=lambda one: one[0]):
            self._advance(at_ms)
            if match is not None:
                self._count(Match(*match), time_ms, observer)
        self._advance(clock_ms)
        return self._events

    def forget(self) -> list[object]:
        """A view of leagues is never forgotten."""
        return []

    @property
    def changed(self) -> ShardTotals:
        """The leagues that the last `apply` touched."""
        leagues = self.totals.leagues
        return ShardTotals({name: leagues[name] for name in sorted(self._touched)})

    @property
    def next_deadline_ms(self) -> int | None:
        """The end of the minute, if it must be emitted."""
        if not self._state.changed:
            return None
        return self._state.clock_ms // MINUTE_MS * MINUTE_MS + MINUTE_MS - 1

    def _count(self, match: Match, time_ms: int, observer: str) -> None:
        state = self._state
        totals = self.totals.leagues.setdefault(match.league, LeagueTotals())
        totals.matches += 1
        totals.points += match.points
        totals.first_event_ms = min(totals.first_event_ms or time_ms, time_ms)
        totals.last_event_ms = max(totals.last_event_ms or time_ms, time_ms)
        totals.clock_ms = state.clock_ms
        if observer and observer not in totals.observers:
            totals.observers.append(observer)
        begins = state.pointless.setdefault(match.league, {})
        since_ms = begins.get(match.match)
        if match.points and since_ms is not None:
            del begins[match.match]
            self._report(match, since_ms, ended_ms=state.clock_ms)
        elif not match.points and since_ms is None:
            begins[match.match] = time_ms
            totals.pointless += 1
            self._report(match, time_ms)
        totals.verdict = Verdict.DEGRADED if begins else Verdict.OK
        totals.verdict_reason = "unacknowledged" if begins else "ok"
        self._touched.add(match.league)
        if match.league not in state.changed:
            state.changed.append(match.league)

    def _report(self, match: Match, since_ms: int, ended_ms: int | None = None) -> None:
        incident = Incident(
            IncidentKind.UNACKNOWLEDGED,
            match.match,
            "",
            since_ms=since_ms,
            found_ms=since_ms,
            ended_ms=ended_ms,
        )
        self._events.append(GroupIncident(match.league, incident))

    def _advance(self, clock_ms: int) -> None:
        """Move the clock; emit the minute that ends before it."""
        state = self._state
        minute_ms = state.clock_ms // MINUTE_MS * MINUTE_MS
        if clock_ms >= minute_ms + MINUTE_MS:
            for league in state.changed:
                part = self.totals.leagues[league]
                copy = msgspec.structs.replace(part, observers=[*part.observers])
                self._events.append(LeagueMinute(minute_ms, copy, league))
            state.changed = []
        state.clock_ms = max(clock_ms, state.clock_ms)


def join(parts: Sequence[LeagueTotals]) -> LeagueTotals:
    """Return the totals of a league: the worst verdict of its parts."""
    joined = sum_totals(LeagueTotals, parts)
    worst = max(parts, key=lambda one: one.verdict is Verdict.DEGRADED)
    joined.verdict, joined.verdict_reason = worst.verdict, worst.verdict_reason
    joined.observers = sorted({name for one in parts for name in one.observers})
    return joined


def leagues_of(totals: ShardTotals) -> Mapping[str, LeagueTotals]:
    """Return the parts of leagues in one view."""
    return totals.leagues


def changed_leagues(view: ShardView) -> ShardTotals:
    """Return the totals of the leagues that the last batch touched."""
    return view.changed


def league_of(event: LeagueMinute | GroupIncident) -> str:
    """Return the league of an event."""
    return event.group


def explain_pointless(incident: Incident, settings: ObserverSettings) -> str:
    """Say what is wrong with a match."""
    del settings
    return f"{incident.message_id} brought no points"


FIGURES = FigureTable(
    LeagueTotals,
    Names(label="league", one="league", many="leagues"),
    [
        Figure(
            "matches",
            "Matches of the league.",
            report=("matches",),
            series=(counter("league_matches_total").of(),),
            group="Game",
            heading="Matches",
            column=1,
            line=Line("matches", "matches"),
        ),
        Figure(
            "points",
            "Points of all matches.",
            report=("points",),
            series=(counter("league_points_total").of(),),
            group="Game",
            heading="Points",
            column=2,
        ),
        Figure(
            "last_event_ms",
            "Event time of the newest match.",
            Unit.TIME,
            series=(gauge("league_last_event_seconds").of(),),
        ),
        Figure("verdict", "Health of the league.", Unit.WORD, report=("verdict",)),
    ],
    groups=("Game",),
    charts=(
        ChartShape(
            key="matches", title="Matches", note="Per interval.", scale=Scale.COUNT
        ),
    ),
)

LEAGUES: Kind[LeagueDigest, ShardTotals, object] = Kind(
    prefix="league",
    digest=LeagueDigest,
    view=ShardView,
    totals=ShardTotals,
    blob_version=BLOB_VERSION,
    label_file="league-labels.json",
    outlets={GroupIncident: Outlet.INCIDENTS, LeagueMinute: Outlet.MINUTES},
    figures=FIGURES,
    grouping=Grouping(
        totals=LeagueTotals,
        split=leagues_of,
        join=join,
        name_of=league_of,
        changed=changed_leagues,
    ),
    explain=explain_pointless,
)

LEAGUE: TrafficProtocol[Match] = TrafficProtocol(
    name="league",
    decode=decode,
    fits_key=fits_key,
    view_name=view_of,
    new_digester=LeagueDigester,
    kind=LEAGUES,
    split=split,
)
