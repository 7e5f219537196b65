"""The ledger: one commit for each batch, and what a repeated batch does."""

from __future__ import annotations

import resource
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from sds_core.observer.protocols import PROTOCOLS, kinds_of
from streaming.damage import DamagedCheckpoint
from streaming.ledger.ledger import Ledger
from streaming.ledger.stores import Stores
from tests.support.streaming.history import lost, minutes
from tests.support.streaming.ledger import ledger_in
from tests.support.toy.pipeline import Pipeline
from tests.support.toy.season import clock_of, season

KINDS = kinds_of(PROTOCOLS)
UNDONE = (
    "incidents",
    "outbox",
    "minutes",
    "baseline",
    "acknowledgements",
    "remainders",
    "parts",
)


def content(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    """All rows of the tables that a batch may undo."""
    with ledger.transaction() as connection:
        return {
            table: sorted(connection.execute(f"SELECT * FROM {table}"), key=repr)  # noqa: S608
            for table in UNDONE
        }


def stores_of(ledger: Ledger) -> Stores:
    """The stores of all protocols."""
    return Stores.of(ledger, KINDS, 9, True, True)


def test_batches_that_spark_has_lost_are_not_undone_in_part(tmp_path: Path) -> None:
    """Only the newest could be: those before it would count twice."""
    ledger = ledger_in(tmp_path)
    for number in range(3):
        with ledger.batch(number, f"at {number}"):
            ledger.write("INSERT INTO views VALUES (?)", f"sds/{number}")
    ledger.begin(1, None)
    ledger.begin(1, "elsewhere")
    with ledger.batch(2, "at 2"):
        ledger.write("INSERT INTO views VALUES (?)", "sds/again")
    with pytest.raises(
        DamagedCheckpoint,
        match="has batch 2, although Spark has not even committed batch 1",
    ):
        ledger.begin(0, "at 1")


def test_batch_with_the_same_number_and_position_is_known(tmp_path: Path) -> None:
    """Also by the next process; its rows are not stored twice."""
    ledger = ledger_in(tmp_path)
    findings = stores_of(ledger).by_kind["sds"].findings
    with ledger.batch(0, "here") as is_new:
        assert is_new
        findings.record_incidents({"town": [lost("a")]})
    again = Ledger(tmp_path / "ledger.sqlite", expected=True)
    again.begin(None, "here")
    with again.batch(0, "here") as is_new:
        assert not is_new
    assert findings.count_pending() == 1


def test_every_change_of_a_batch_is_undone_if_it_is_planned_again(
    tmp_path: Path,
) -> None:
    """Rows that it added go, and those that it changed or removed are back."""
    ledger = ledger_in(tmp_path)
    store = stores_of(ledger).by_kind["sds"]
    with ledger.batch(0, "first"):
        store.findings.record_incidents({"town": [lost("a")]})
        store.recent.record({"town": minutes(3)})
    before = content(ledger)
    with ledger.batch(1, "second"):
        store.findings.record_incidents({"town": [lost("a", ended_ms=9), lost("b")]})
        store.findings.mark_incidents(lambda *_: True, 0)
        store.recent.record({"town": minutes(200), "village": minutes(1)})
        store.recent.forget("village")
    assert content(ledger) != before
    ledger.begin(0, "other")
    assert content(ledger) == before
    with ledger.batch(1, "other") as is_new:
        assert is_new
    # Of all batches before the newest one, nothing can be undone any more.
    ledger.begin(1, None)
    assert content(ledger) == before


def test_sequence_numbers_of_an_undone_batch_are_not_given_again(
    tmp_path: Path,
) -> None:
    """A destination may have the rows already."""
    ledger = ledger_in(tmp_path)
    findings = stores_of(ledger).by_kind["sds"].findings
    for position in ("first", "second"):
        ledger.begin(None, position)
        with ledger.batch(0, position):
            findings.record_minutes({"town": minutes(2)})
    with ledger.transaction() as connection:
        told = connection.execute("SELECT told FROM outbox").fetchall()
    assert told == [(3,), (4,)]


def test_batch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Whatever it has written before."""
    ledger = ledger_in(tmp_path)
    stores = stores_of(ledger)
    before = content(ledger)

    def fail() -> None:
        with ledger.batch(0, ""):
            stores.by_kind["sds"].findings.record_incidents({"town": [lost("a")]})
            stores.labels["sds"].admit(["town"])
            message = "the disk is full"
            raise OSError(message)

    with pytest.raises(OSError, match="disk"):
        fail()
    assert content(ledger) == before
    assert not ledger.has(0, "")
    assert stores_of(ledger).labels["sds"].labels == ()


def test_batch_without_a_change_commits_nothing(tmp_path: Path) -> None:
    """So a job without traffic does not write."""
    ledger = ledger_in(tmp_path)
    with ledger.batch(0, "here"):
        stores_of(ledger)
    log = tmp_path / "ledger.sqlite-wal"
    size = log.stat().st_size
    with ledger.batch(1, "there"):
        pass
    assert log.stat().st_size == size
    assert not ledger.has(1, "there")


def test_stored_batch_cannot_be_written_again_without_an_undo(tmp_path: Path) -> None:
    """It would be in the file twice."""
    ledger = ledger_in(tmp_path)
    with ledger.batch(1, "here"):
        stores_of(ledger).labels["sds"].admit(["town"])
    for number, position in ((1, "there"), (0, "here")):
        with (
            pytest.raises(
                ValueError,
                match="cannot be stored: the ledger has batch 1,",
            ),
            ledger.batch(number, position),
        ):
            pass


def test_other_writers_and_readers_work_during_a_batch(tmp_path: Path) -> None:
    """A reader sees what was committed; what others write is not undone."""
    ledger = ledger_in(tmp_path)
    stores = stores_of(ledger)
    stores.register.request([("sds:town", b"x")])
    with ledger.batch(0, "here"):
        stores.by_kind["sds"].findings.record_incidents({"town": [lost("a")]})
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as other:
            assert other.execute("SELECT count(*) FROM incidents").fetchone() == (0,)
    other_process = Ledger(tmp_path / "ledger.sqlite", expected=True)
    stores_of(other_process).by_kind["sds"].findings.record_minutes(
        {"town": minutes(1)}
    )
    ledger.begin(None, None)
    with ledger.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM incidents").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM outbox").fetchone() == (1,)
    assert stores.register.newest_request() == 1


def test_log_is_copied_into_the_file_when_it_is_large(tmp_path: Path) -> None:
    """By whoever waits for the job, not by a batch."""
    ledger = ledger_in(tmp_path)
    findings = stores_of(ledger).by_kind["sds"].findings
    for number in range(3):
        with ledger.batch(number, ""):
            findings.record_minutes({f"c{n}": minutes(20) for n in range(500)})
    file, log = tmp_path / "ledger.sqlite", tmp_path / "ledger.sqlite-wal"
    assert file.stat().st_size < log.stat().st_size
    ledger.tidy()
    assert file.stat().st_size > 2_000_000
    ledger.close()
    assert not log.exists()


def test_part_of_a_group_is_that_before_a_batch_that_is_planned_again(
    tmp_path: Path,
) -> None:
    """So its minutes are those of a job to which nothing happened."""
    first, rest = season()[:20], season()[20:]
    pipeline = Pipeline(tmp_path)
    pipeline.batch(first, clock_of(first))
    before = content(pipeline.ledger)
    pipeline.lose(rest, clock_of(rest), replanned=True)
    assert content(pipeline.ledger) == before
    pipeline.batch(rest[:10], clock_of(rest[:10]))


def test_second_writer_of_a_batch_finds_it_stored(tmp_path: Path) -> None:
    """An abandoned query may still write after the query has been started again."""
    first, second = ledger_in(tmp_path), Ledger(tmp_path / "ledger.sqlite")
    answers = []

    def repeat() -> None:
        with second.batch(0, "here") as is_new:
            answers.append(is_new)

    thread = threading.Thread(target=repeat)
    with first.batch(0, "here"):
        thread.start()
        # It has begun to wait, or will.
        thread.join(0.2)
        stores_of(first).by_kind["sds"].findings.record_incidents({"a": [lost("a")]})
    thread.join()
    assert answers == [False]


def test_log_that_cannot_be_copied_is_copied_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """On a full disk, which batches may survive; it is logged once."""
    ledger = ledger_in(tmp_path)
    findings = stores_of(ledger).by_kind["sds"].findings
    with ledger.batch(0, "here"):
        for number in range(40):
            long = "x" * 100_000
            findings.record_incidents({long: [lost(f"{number}{long}")]})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = (tmp_path / "ledger.sqlite").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        ledger.tidy()
        ledger.tidy()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    (line,) = (one.getMessage() for one in caplog.records)
    assert "ledger.sqlite" in line
    assert (tmp_path / "ledger.sqlite").stat().st_size == size
    ledger.tidy()
    assert (tmp_path / "ledger.sqlite").stat().st_size > size


def test_text_that_is_not_utf8_is_damage(tmp_path: Path) -> None:
    """Python's `sqlite3` raises this error itself, so the error has no code."""
    ledger = ledger_in(tmp_path)
    with pytest.raises(DamagedCheckpoint, match=r"ledger\.sqlite.*decode.*UTF-8"):
        ledger.rows("SELECT CAST(x'6c6fff' AS TEXT) AS label")
