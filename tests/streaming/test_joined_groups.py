"""Views that are parts of groups: what the job publishes and stores of the groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from connectors.history.query import channel_minutes, find_incidents
from connectors.history.schema import NumberedMinute
from sds_core.observer.blindness import judge_blindness
from sds_core.observer.freshness import Arrivals
from sds_core.observer.incidents import IncidentQuery
from sds_core.observer.minutes import GroupMinute
from sds_core.observer.protocols import kinds_of
from sds_core.observer.record import RawRecord
from sds_core.observer.report import build_report
from sds_core.observer.sds.totals import remains_of
from sds_core.observer.snapshot import JobFigures
from sds_core.observer.verdict import Verdict
from streaming.cli.incidents import command
from streaming.damage import DamagedCheckpoint
from streaming.history import HistoryExporter, Outbox
from streaming.ledger.findings import Destination
from streaming.ledger.group_minutes import GroupMinutes
from streaming.settings import HistorySettings
from tests.support.streaming.ledger import ledger_in
from tests.support.toy.league import (
    LEAGUE,
    LEAGUES,
    SHARDS,
    LeagueMinute,
    LeagueTotals,
    Match,
    split,
    view_of,
)
from tests.support.toy.pipeline import Pipeline
from tests.support.toy.season import BEGIN_MS, MINUTE_MS, clock_of, record, season

EVERYTHING = IncidentQuery()


def leagues(pipeline: Pipeline) -> Mapping[str, Any]:
    """The totals on the board, by name of the league."""
    return pipeline.board.snapshot.views["league"].totals


def run(pipeline: Pipeline, batches: Iterable[list[RawRecord]]) -> None:
    """Run batches, then one an hour later so that the last minute ends."""
    newest_ms = BEGIN_MS
    for batch in batches:
        newest_ms = max(newest_ms, clock_of(batch))
        pipeline.batch(batch, newest_ms)
    pipeline.batch([], BEGIN_MS + 3_600_000)
    pipeline.batch([], BEGIN_MS + 3_600_001)


def outcome(pipeline: Pipeline) -> Any:
    """All that is published and stored of leagues."""
    totals = leagues(pipeline)
    minutes = {
        (one.channel, one.minute_ms): one.totals
        for name in totals
        for one in pipeline.store.findings.pending(
            Destination.PARQUET, NumberedMinute, channel=name
        )
    }
    incidents = pipeline.store.findings.find_incidents(EVERYTHING)
    return dict(totals), minutes, incidents


def whole(directory: Path) -> Any:
    """The outcome of all records in one batch."""
    pipeline = Pipeline(directory)
    run(pipeline, [season()])
    return outcome(pipeline)


def test_group_has_the_sum_of_its_parts(tmp_path: Path) -> None:
    """Matches of one league lie in several views, and count in one group."""
    matches = {view_of(Match("north", f"m{n}", 0)) for n in range(11)}
    assert len(matches) == SHARDS
    pipeline = Pipeline(tmp_path)
    run(pipeline, [season()])
    totals = leagues(pipeline)
    assert {name: one.matches for name, one in totals.items()} == {
        "north": 26,
        "south": 14,
    }
    assert totals["north"].observers == ["tap"]


@pytest.mark.parametrize(
    ("cuts", "lost"),
    [
        ((20,), ()),
        ((7, 8, 17, 26), ()),
        ((9, 18, 27, 36), (0, 9, 18, 27, 36)),
        ((1, 2, 3, 30, 31), (2, 30, 31)),
    ],
)
def test_any_cut_and_any_repeated_batch_give_the_same(
    tmp_path: Path, cuts: tuple[int, ...], lost: tuple[int, ...]
) -> None:
    """Also if the process ends after a batch was stored and before it was committed."""
    pipeline = Pipeline(tmp_path / "cut")
    records, places = season(), [0, *cuts, 40]
    for begin, end in pairwise(places):
        batch = records[begin:end]
        if begin in lost:
            pipeline.lose(batch, clock_of(batch))
        pipeline.batch(batch, clock_of(batch))
    run(pipeline, [])
    assert outcome(pipeline) == whole(tmp_path / "whole")


def test_query_that_is_started_again_publishes_the_same(tmp_path: Path) -> None:
    """The process goes on with a board that has a batch that was not committed."""
    pipeline = Pipeline(tmp_path / "again")
    pipeline.batch(season()[:15], clock_of(season()[:15]))
    late = season()[15:]
    pipeline.fail(late, clock_of(late))
    pipeline.batch(late, clock_of(late))
    run(pipeline, [])
    assert outcome(pipeline) == whole(tmp_path / "whole")


def test_part_that_comes_late_counts_in_the_newest_minute(tmp_path: Path) -> None:
    """Minutes of a group never fall, although one view was slower than another."""
    kinds = kinds_of([LEAGUE])
    minutes = GroupMinutes(ledger_in(tmp_path), kinds)

    def part(minute_ms: int, matches: int) -> LeagueMinute:
        return LeagueMinute(minute_ms, LeagueTotals(matches=matches), "north")

    first = [part(0, 1), part(MINUTE_MS, 2)]
    assert _matches(minutes.join(LEAGUES, {"0": first})) == [(0, 1), (MINUTE_MS, 2)]
    late = {"1": [part(0, 5)]}
    assert _matches(minutes.join(LEAGUES, late)) == [(MINUTE_MS, 7)]


def _matches(found: Mapping[str, Iterable[GroupMinute[Any]]]) -> list[tuple[int, int]]:
    """Minute and matches of each minute of the league."""
    return [(one.minute_ms, one.totals.matches) for one in found["north"]]


def test_damaged_parts_are_reported_with_a_remedy(tmp_path: Path) -> None:
    """As other files of the checkpoint are."""
    ledger = ledger_in(tmp_path)
    with ledger.transaction() as connection:
        row = ("league", "north", "0", 0, b"no part")
        connection.execute("INSERT INTO parts VALUES (?, ?, ?, ?, ?)", row)
    with pytest.raises(DamagedCheckpoint, match=r"ledger\.sqlite.*a part cannot"):
        GroupMinutes(ledger, kinds_of([LEAGUE]))


def test_minutes_of_a_group_grow_although_one_part_rests(tmp_path: Path) -> None:
    """A view emits nothing for a minute without a change; its part still counts."""
    _, minutes, _ = whole(tmp_path)
    north = [one.matches for (name, _), one in minutes.items() if name == "north"]
    assert north == sorted(north)
    assert north[-1] == 26


def test_restart_reads_all_groups_from_the_views(tmp_path: Path) -> None:
    """Rows of batches have changed groups alone, the state has all."""
    pipeline = Pipeline(tmp_path)
    run(pipeline, [season()[:20], season()[20:]])
    before = dict(leagues(pipeline))
    pipeline.start()
    assert dict(leagues(pipeline)) == before


def test_batch_joins_only_groups_that_it_touches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cost must not follow the number of all groups."""
    pipeline = Pipeline(tmp_path)
    pipeline.batch(season(), clock_of(season()))
    published: list[Any] = []
    publish = pipeline.board.publish

    def note(following: Any) -> None:
        published.append(following.changed["league"])
        publish(following)

    monkeypatch.setattr(pipeline.board, "publish", note)
    last = [record(50, 300, "south", "m1", 4)]
    pipeline.batch(last, clock_of(last))
    assert [set(one) for one in published] == [{"south"}]


def test_labels_are_given_to_groups(tmp_path: Path) -> None:
    """Never to views, and not beyond the budget."""
    pipeline = Pipeline(tmp_path, label_budget=1)
    run(pipeline, [season()])
    views = pipeline.board.snapshot.views["league"]
    assert views.labels == ("north",)
    assert set(views.totals) == {"north", "south"}


def test_history_has_tables_of_the_groups(tmp_path: Path) -> None:
    """With the names of their kind; the explanation is that of the protocol."""
    pipeline = Pipeline(tmp_path)
    run(pipeline, [season()])
    _, minutes, incidents = outcome(pipeline)
    store = pipeline.store
    directory = tmp_path / "history"
    with HistoryExporter(
        HistorySettings(directory, has_topics=False),
        [Outbox(store.findings, None, store.tables)],
        lambda: BEGIN_MS,
    ).running():
        pass
    rows = channel_minutes(directory, "north", 0, 1 << 50, tables=store.tables)
    assert [(row["league"], row["matches"]) for row in rows] == [
        (name, one.matches) for (name, _), one in minutes.items() if name == "north"
    ]
    found = find_incidents(directory, EVERYTHING, store.tables)
    assert found == incidents
    assert {one.name for one in directory.iterdir() if one.is_dir()} == {
        "league_incidents",
        "league_minutes",
    }


def test_incident_of_a_group_is_marked_if_its_taps_had_a_hole(tmp_path: Path) -> None:
    """By the taps of the group, from whatever view the incident came."""
    pipeline = Pipeline(tmp_path)
    first = [record(0, 0, "north", "m1", 3)]
    pipeline.batch(first, clock_of(first))
    late = [record(1, 120, "north", "m2", 0)]
    pipeline.batch(late, clock_of(late))
    (found,) = pipeline.store.findings.find_incidents(EVERYTHING)
    assert (found.channel, found.incident.message_id) == ("north", "m2")
    assert found.tap_hole


def test_group_is_blind_while_its_taps_are(tmp_path: Path) -> None:
    """As a channel is."""
    pipeline = Pipeline(tmp_path)
    first = [record(0, 0, "north", "m1", 3)]
    pipeline.batch(first, clock_of(first))
    job = JobFigures(arrivals=Arrivals(0))
    snapshot = replace(pipeline.board.snapshot, clock_ms=BEGIN_MS, job=job).as_of(61)
    judged = judge_blindness(snapshot)
    assert judged.views["league"].totals["north"].verdict is Verdict.BLIND


def test_report_has_the_groups(tmp_path: Path) -> None:
    """With the sum over all."""
    pipeline = Pipeline(tmp_path)
    run(pipeline, [season()])
    section = build_report(pipeline.board.snapshot, 0)["views"]["league"]
    assert section["totals"]["matches"] == 40
    assert section["views"]["south"]["matches"] == 14


def test_parts_of_groups_cannot_be_forgotten() -> None:
    """What a forgotten view had counted would be missing in its groups."""
    make: Callable[..., Any] = replace
    with pytest.raises(ValueError, match="league"):
        make(LEAGUES, remains=remains_of)


def test_every_view_gets_a_part_of_each_frame() -> None:
    """So all views have the same clock, and emit a minute in the same batch."""
    parts = dict(split(Match("north", "m1", 3)))
    assert len(parts) == SHARDS
    assert [one for one in parts.values() if one] == [Match("north", "m1", 3)]


def test_command_lists_incidents_of_groups_from_a_report(tmp_path: Path) -> None:
    """With their own explanation, and only those of one group if it is named."""
    pipeline = Pipeline(tmp_path)
    run(pipeline, [season()])
    incidents = pipeline.store.findings.find_incidents(EVERYTHING)
    report = build_report(
        pipeline.board.snapshot, 0, {}, (), {LEAGUES.prefix: incidents}
    )
    path = tmp_path / "report.json"
    path.write_bytes(msgspec.json.encode(report))
    given = ["--from-report", str(path), "--json", "--views"]
    result = CliRunner().invoke(command, [*given, "league", "--channel", "north"])
    listed = [msgspec.json.decode(line) for line in result.output.splitlines()]
    assert {one["channel"] for one in listed} == {"north"}
    assert all(one["why"].endswith("brought no points") for one in listed)
    result = CliRunner().invoke(command, [*given, "cup"])
    assert result.exit_code == 2
    assert "has no views 'cup'" in result.output
