"""What leaves the job for good waits in order until everybody has it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.history.schema import ToldIncident, ToldMinute
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    IncidentQuery,
)
from sds_core.observer.sds.channel_minute import ChannelMinute
from sds_core.observer.sds.totals import ChannelTotals
from streaming.incidents import IncidentStore
from streaming.outbox import Destination, Outbox, Told, open_findings
from tests.golden.checkpoints.make import HERE
from tests.support.properties import CAREFUL

FIRST = 1_000
ALL = 1_000_000


def lost(message_id: str, found_ms: int = 5, ended_ms: int | None = None) -> Incident:
    """A lost message."""
    return Incident(IncidentKind.LOST, message_id, "ana", 1, found_ms, ended_ms)


def minute(minute_ms: int) -> ChannelMinute:
    """A minute of a channel."""
    return ChannelMinute(minute_ms, ChannelTotals())


def found(incident: Incident, tap_hole: bool = False) -> ChannelIncident:
    """An incident of channel town."""
    return ChannelIncident("town", incident, tap_hole)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where they lie."""
    return tmp_path / "incidents.sqlite"


def test_rows_wait_in_the_order_in_which_they_were_told(path: Path) -> None:
    """Incidents as they were then, minutes between them; so many as are asked for."""
    store, outbox = open_findings(path, FIRST)
    store.put({"town": [lost("a")]})
    outbox.put_minutes({"town": [minute(0), minute(60_000)], "village": [minute(0)]})
    store.put({"town": [lost("a", ended_ms=9)]})
    expected: list[Told] = [
        ToldIncident(1_000, found(lost("a"))),
        ToldMinute(1_001, "town", 0, ChannelTotals()),
        ToldMinute(1_002, "town", 60_000, ChannelTotals()),
        ToldMinute(1_003, "village", 0, ChannelTotals()),
        ToldIncident(1_004, found(lost("a", ended_ms=9))),
    ]
    assert outbox.pending(Destination.PARQUET, ALL) == expected
    assert outbox.pending(Destination.TOPICS, 2) == expected[:2]
    assert len(outbox) == 5


def test_row_is_kept_until_each_destination_has_it(path: Path) -> None:
    """One that is behind holds up nobody else."""
    store, outbox = open_findings(path, FIRST)
    store.put({"town": [lost("a"), lost("b"), lost("c")]})
    outbox.delivered(Destination.PARQUET, FIRST + 2)
    assert outbox.pending(Destination.PARQUET, ALL) == []
    assert len(outbox.pending(Destination.TOPICS, ALL)) == len(outbox) == 3
    outbox.delivered(Destination.TOPICS, FIRST + 1)
    assert [one.told for one in outbox.pending(Destination.TOPICS, ALL)] == [FIRST + 2]
    assert len(outbox) == 1
    outbox.delivered(Destination.TOPICS, FIRST + 2)
    assert len(outbox) == 0


def test_a_mark_is_told_as_well(path: Path) -> None:
    """And every later telling has it."""
    store, outbox = open_findings(path, FIRST)
    store.put({"town": [lost("a"), lost("b")]})
    store.mark(lambda channel, incident: incident.message_id == "a", 0)
    store.put({"town": [lost("a", ended_ms=9)]})
    assert outbox.pending(Destination.TOPICS, ALL)[2:] == [
        ToldIncident(FIRST + 2, found(lost("a"), tap_hole=True)),
        ToldIncident(FIRST + 3, found(lost("a", ended_ms=9), tap_hole=True)),
    ]


def test_count_goes_on_though_nothing_is_left(path: Path) -> None:
    """Whatever the clock says at a restart, a later row has the greater number."""
    store, outbox = open_findings(path, FIRST)
    store.put({"town": [lost("a")]})
    for destination in Destination:
        outbox.delivered(destination, FIRST)
    for first_told in (1, ALL):
        store, outbox = open_findings(path, first_told)
        store.put({"town": [lost("b")]})
    told = [one.told for one in outbox.pending(Destination.TOPICS, ALL)]
    assert told == [FIRST + 1, FIRST + 2]


def test_what_an_earlier_version_found_is_told_once(path: Path) -> None:
    """The file of 0.3.0 has no outbox."""
    shutil.copy(HERE / "0.3.0" / "monitor" / "incidents.sqlite", path)
    known = open_findings(path, FIRST)[0].find(IncidentQuery())
    assert len(known) == 5
    known.sort(key=lambda one: (one.incident.found_ms, one.channel, one.incident.key))
    _, again = open_findings(path, ALL)
    assert again.pending(Destination.PARQUET, ALL) == [
        ToldIncident(number, one) for number, one in enumerate(known, FIRST)
    ]


class Model:
    """What an outbox should hold, kept in memory."""

    def __init__(self) -> None:
        self.rows: list[Told] = []
        self.reached = dict.fromkeys(Destination, 0)

    def tell(self, row: Callable[[int], Told]) -> None:
        """Add a row, which is given its number."""
        self.rows.append(row(FIRST + len(self.rows)))

    def pending(self, destination: Destination) -> list[Told]:
        """What a destination lacks."""
        return [one for one in self.rows if one.told > self.reached[destination]]


def _put_incident(store: IncidentStore, outbox: Outbox, model: Model, n: int) -> None:
    store.put({"town": [lost(str(n))]})
    model.tell(lambda told: ToldIncident(told, found(lost(str(n)))))


def _put_minutes(store: IncidentStore, outbox: Outbox, model: Model, n: int) -> None:
    totals = ChannelTotals(messages=n)
    minutes_ms = [60_000 * m for m in range(n)]
    outbox.put_minutes({"town": [ChannelMinute(ms, totals) for ms in minutes_ms]})
    for ms in minutes_ms:
        model.tell(lambda told, ms=ms: ToldMinute(told, "town", ms, totals))


def _deliver(destination: Destination) -> Callable[..., None]:
    def deliver(store: IncidentStore, outbox: Outbox, model: Model, n: int) -> None:
        rows = model.pending(destination)[:n]
        if rows:
            outbox.delivered(destination, rows[-1].told)
            model.reached[destination] = rows[-1].told

    return deliver


STEPS = [_put_incident, _put_minutes, *map(_deliver, Destination)]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 4)), max_size=8))
@settings(CAREFUL, max_examples=40)
def test_killed_after_any_step_it_holds_what_it_should(
    steps: list[tuple[Callable[..., None], int]],
) -> None:
    """Whoever opens a copy of the files finds what each destination lacks."""
    model = Model()
    with TemporaryDirectory() as place:
        path = Path(place) / "a" / "incidents.sqlite"
        store, outbox = open_findings(path, FIRST)
        for number, (step, n) in enumerate(steps):
            step(store, outbox, model, n)
            copy = shutil.copytree(path.parent, Path(place) / f"copy-{number}")
            _, reopened = open_findings(copy / path.name, ALL)
            for destination in Destination:
                assert reopened.pending(destination, ALL) == model.pending(destination)
            reached = min(model.reached.values())
            assert len(reopened) == sum(one.told > reached for one in model.rows)
