"""A protocol that the product does not know, from its records to report and page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from connectors.history.query import channel_minutes, find_incidents
from connectors.history.schema import tables_of
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.incidents import IncidentQuery
from sds_core.observer.protocols import PROTOCOLS
from sds_core.wire import encode
from streaming.cli.actions.forget import forget
from streaming.cli.serving import status_server
from streaming.job import running_job
from streaming.settings import HistorySettings
from tests.support.frames import START_MS, FrameFactory
from tests.support.identities import assert_identities
from tests.support.streaming.jobs import job_settings, wait_until
from tests.support.toy.league import LEAGUE, LEAGUES
from tests.support.toy.protocol import QUIET_MS, ROOMS, TOY

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

TAP = ("observer", b"tap")
MOVES = (
    ("hall", b"hall/ada/3"),
    ("hall", b"hall/bob/4"),
    ("yard", b"yard/ada/5"),
    ("hall", b"yard/ada/6"),  # The key is another room: a dead letter.
    ("hall", b"no move"),
)
TABLE = ChannelTable(
    [ChannelEntry("hall", "The hall", mute_until_ms=4_000_000_000_000)]
)
MATCHES = (b"north/m1/3", b"north/m2/4", b"south/m3/5", b"north/m4/0", b"south/m1/2")


def records() -> list[TopicRecord]:
    """A minute of SDS and of the toy in one topic, then a heartbeat much later."""
    frames = FrameFactory("town")
    values = [encode(frames.content(str(n), "alice", n)) for n in range(1, 4)]
    found = [
        TopicRecord(0, START_MS + 1_000 * n, b"town", value, (TAP, _seq(n)))
        for n, value in enumerate(values)
    ]
    found += [
        TopicRecord(
            0,
            START_MS + 10_000 + 1_000 * n,
            room.encode(),
            value,
            (TAP, _seq(len(values) + n), ("protocol", b"toy")),
        )
        for n, (room, value) in enumerate(MOVES)
    ]
    before = len(found)
    found += [
        TopicRecord(
            0,
            START_MS + 16_000 + 1_000 * n,
            value.partition(b"/")[0],
            value,
            (TAP, _seq(before + n), ("protocol", b"league")),
        )
        for n, value in enumerate(MATCHES)
    ]
    last_seq = len(found) - 1
    for n in range(1, 9):
        found.append(
            TopicRecord(
                0,
                START_MS + 10_000 * (n + 1),
                None,
                b"",
                (TAP, _seq(last_seq), ("kind", b"heartbeat")),
            )
        )
    return found


def _seq(number: int) -> tuple[str, bytes]:
    return "seq", str(number).encode()


@dataclass(frozen=True)
class Seen:
    """What a job shows that has read all records.

    Attributes:
        report: The report.
        metrics: The text of ``/metrics``.
        home, page: The first page, and the one of rooms.
        incidents: Incidents of leagues.
        history: Directory of the history.
        kafka: The topic of the records.
        forgotten: The report after the yard was forgotten.
        restarted: The report of a second job on the same checkpoint, before its first
            batch.
    """

    report: dict[str, Any]
    metrics: str
    home: str
    page: str
    incidents: list[dict[str, Any]]
    history: Path
    kafka: KafkaSettings
    forgotten: dict[str, Any]
    restarted: dict[str, Any]


@pytest.fixture(scope="module")
def seen(
    module_topic: Callable[..., KafkaSettings],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Seen]:
    """One job, with the toy registered beside what the product knows."""
    kafka = module_topic()
    write(records(), kafka)
    checkpoint: Path = tmp_path_factory.mktemp("toy") / "checkpoint"
    history = HistorySettings(
        checkpoint.parent / "history",
        incidents_topic=f"{kafka.topic}.incidents",
        minutes_topic=f"{kafka.topic}.minutes",
    )
    settings = job_settings(kafka, checkpoint, until_caught_up=False, history=history)
    protocols = (*PROTOCOLS, TOY, LEAGUE)
    last_ms = records()[-1].timestamp_ms
    with running_job(spark, settings, protocols=protocols) as job:
        wait_until(job, lambda: job.board.snapshot.clock_ms == last_ms, 240)
        job.board.set(table=TABLE)
        with status_server(job, "127.0.0.1", 0) as url:
            metrics, home, page = (
                httpx.get(f"{url}{path}").raise_for_status().text
                for path in ("/metrics", "/", "/views/toy?sort=points")
            )
            address = f"{url}/api/v1/views/league/incidents"
            incidents = httpx.get(address).raise_for_status().json()["incidents"]
        report = job.report(0)
        assert_identities(report)
        forget(checkpoint, ["yard"], dry_run=False, yes=True, kind=ROOMS)
        wait_until(
            job, lambda: "yard" not in job.board.snapshot.views[ROOMS.prefix].totals
        )
        forgotten = job.report(0)
    with running_job(spark, settings, protocols=protocols) as job:
        yield Seen(
            report,
            metrics,
            home,
            page,
            incidents=incidents,
            history=history.directory,
            kafka=kafka,
            forgotten=forgotten,
            restarted=job.report(0),
        )


def test_sds_is_observed_as_ever(seen: Seen) -> None:
    """Its channel counts its own messages, and nothing of the toy."""
    assert seen.report["totals"]["messages"] == 3
    assert set(seen.report["channels"]) == {"town"}


def test_report_has_a_section_of_the_toy(seen: Seen) -> None:
    """Figures of each room and of all together, by the kind's prefix."""
    rooms = seen.report["views"]["toy"]
    assert rooms["totals"] == {"moves": 3, "points": 12}
    hall, yard = (rooms["views"][name] for name in ("hall", "yard"))
    assert (hall["moves"], hall["points"], hall["verdict"]) == (2, 7, "quiet")
    assert (yard["moves"], yard["points"], yard["verdict"]) == (1, 5, "quiet")


def test_bad_records_of_the_toy_are_dead_letters(seen: Seen) -> None:
    """With a reason of its own, and one that every protocol has."""
    undecodable = {"toy_error": 1, "channel_mismatch": 1}
    assert seen.report["totals"]["undecodable"] == undecodable
    assert 'sds_undecodable_frames_total{reason="toy_error"} 1.0' in seen.metrics


def test_metrics_have_the_figures_of_the_toy(seen: Seen) -> None:
    """Under the label of its own."""
    lines = seen.metrics.splitlines()
    assert 'toy_moves_total{room="hall"} 2.0' in lines
    assert 'toy_points_total{room="yard"} 5.0' in lines
    assert "# HELP toy_points_total Points of all moves." in lines


def test_rooms_have_a_page(seen: Seen) -> None:
    """Linked in the navigation, with the columns of the toy's figures."""
    assert '<a href="views/toy">Rooms</a>' in seen.home
    assert 'aria-current="page">Rooms</a>' in seen.page
    for text in ("hall", "yard", "Moves", "Points", "2 quiet"):
        assert text in seen.page


def test_rooms_follow_the_channel_table(seen: Seen) -> None:
    """They have labels, names and muting, by the names of their kind."""
    lines = seen.metrics.splitlines()
    assert 'toy_room_info{name="The hall",room="hall"} 1.0' in lines
    assert 'toy_room_info{name="yard",room="yard"} 1.0' in lines
    until = 'toy_room_muted_until_timestamp_seconds{room="hall"} 4e+09'
    assert until in lines
    assert 'toy_rooms{verdict="quiet"} 2.0' in lines
    assert "sds_monitor_dropped_label_rooms 0.0" in lines


def test_forgotten_room_stays_in_the_sums(seen: Seen) -> None:
    """As a channel does."""
    rooms = seen.forgotten["views"]["toy"]
    assert set(rooms["views"]) == {"hall"}
    assert rooms["totals"] == seen.report["views"]["toy"]["totals"]
    yard = seen.report["views"]["toy"]["views"]["yard"]
    totals = {name: yard[name] for name in ("moves", "points")}
    assert rooms["forgotten"] == {"count": 1, "totals": totals}


def test_rooms_are_in_the_checkpoint(seen: Seen) -> None:
    """A restart shows what was counted before it."""
    assert seen.restarted["views"] == seen.forgotten["views"]


def test_parts_of_leagues_are_joined(seen: Seen) -> None:
    """Report, metrics and incidents have leagues, and never a view of their parts."""
    leagues = seen.report["views"]["league"]
    assert leagues["totals"] == {"matches": 5, "points": 14}
    matches = {name: one["matches"] for name, one in leagues["views"].items()}
    assert matches == {"north": 3, "south": 2}
    assert 'league_points_total{league="south"} 7.0' in seen.metrics.splitlines()
    assert [one["message_id"] for one in seen.incidents] == ["m4"]


def test_history_of_leagues_has_tables_and_topics_of_its_own(seen: Seen) -> None:
    """Named like those of channels."""
    tables = tables_of(LEAGUES)
    (minute,) = channel_minutes(seen.history, "north", 0, 1 << 50, tables=tables)
    assert (minute["league"], minute["matches"]) == ("north", 3)
    (found,) = find_incidents(seen.history, IncidentQuery(), tables)
    assert (found.channel, found.incident.message_id) == ("north", "m4")
    for name in ("incidents", "minutes"):
        topic = replace(seen.kafka, topic=f"{seen.kafka.topic}.{name}.leagues")
        with closing(TopicOffsets(topic)) as offsets:
            assert offsets.partitions()


def test_toy_falls_quiet_by_itself() -> None:
    """The records go on for longer than a room may be silent."""
    *_, last = records()
    assert last.timestamp_ms - START_MS - 14_000 > QUIET_MS
