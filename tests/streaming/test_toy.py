"""A protocol that the product does not know, from its records to report and page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from connectors.kafka.producer import TopicRecord, write
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.protocols import PROTOCOLS
from sds_core.wire import encode
from streaming.cli.serving import status_server
from streaming.job import running_job
from tests.support.frames import START_MS, FrameFactory
from tests.support.identities import assert_identities
from tests.support.streaming.jobs import job_settings, wait_until
from tests.support.toy.protocol import QUIET_MS, TOY

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

TAP = ("observer", b"tap")
MOVES = (
    ("hall", b"hall/ada/3"),
    ("hall", b"hall/bob/4"),
    ("yard", b"yard/ada/5"),
    ("hall", b"yard/ada/6"),  # The key is another room: a dead letter.
    ("hall", b"no move"),
)


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
        restarted: The report of a second job on the same checkpoint, before its first
            batch.
    """

    report: dict[str, Any]
    metrics: str
    home: str
    page: str
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
    settings = job_settings(kafka, checkpoint, until_caught_up=False)
    protocols = (*PROTOCOLS, TOY)
    last_ms = records()[-1].timestamp_ms
    with running_job(spark, settings, protocols=protocols) as job:
        wait_until(job, lambda: job.board.snapshot.clock_ms == last_ms, 240)
        with status_server(job, "127.0.0.1", 0, lambda: last_ms) as url:
            texts = [
                httpx.get(f"{url}{path}").raise_for_status().text
                for path in ("/metrics", "/", "/views/toy?sort=points")
            ]
        report = job.report(0)
        assert_identities(report)
    with running_job(spark, settings, protocols=protocols) as job:
        yield Seen(report, *texts, restarted=job.report(0))


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


def test_rooms_are_in_the_checkpoint(seen: Seen) -> None:
    """A restart shows what was counted before it."""
    assert seen.restarted["views"] == seen.report["views"]


def test_toy_falls_quiet_by_itself() -> None:
    """The records go on for longer than a room may be silent."""
    *_, last = records()
    assert last.timestamp_ms - START_MS - 14_000 > QUIET_MS
