"""The ledger takes over the files of releases up to 0.15."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sds_core.observer.incidents import IncidentQuery
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from streaming.batch_log import read_batch_log
from streaming.checkpoint import check_identity
from streaming.damage import DamagedCheckpoint
from streaming.ledger import importing
from streaming.ledger.findings import Destination
from streaming.ledger.importing import open_ledger
from streaming.ledger.ledger import Ledger
from streaming.ledger.stores import Stores
from tests.support.golden.checkpoints import CHECKPOINTS, TOPIC
from tests.support.streaming.history import pending

KINDS = kinds_of(PROTOCOLS)
VERSIONS = sorted(
    path.name
    for path in CHECKPOINTS.iterdir()
    if not (path / "monitor" / "ledger.sqlite").exists()
)
FIRST = 1_000
ALL = 1_000_000
TABLES = {
    "incidents.sqlite": ("incidents", "outbox", "verdicts"),
    "minutes.sqlite": ("minutes", "baseline", "fields"),
    "acknowledgements.sqlite": ("acknowledgements",),
    "views.sqlite": ("views", "requests"),
}


def opened(checkpoint: Path) -> Ledger:
    """Open a checkpoint as a start does."""
    log = read_batch_log(checkpoint)
    identity = check_identity(checkpoint, TOPIC, False, has_batches=True)
    return open_ledger(checkpoint, identity, KINDS, log.committed, FIRST)[1]


def count(path: Path, table: str) -> int:
    """Number of rows of a table; 0 if there is none."""
    with closing(sqlite3.connect(path)) as connection:
        if not connection.execute(
            "SELECT 1 FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone():
            return 0
        rows: tuple[int] = connection.execute(
            f"SELECT count(*) FROM {table}"  # noqa: S608
        ).fetchone()
    return rows[0]


def counts(directory: Path) -> dict[str, int]:
    """Number of rows of all tables in older files, by table."""
    found: dict[str, int] = {}
    for prefix in ("", "mvds-"):
        for name, tables in TABLES.items():
            path = directory / f"{prefix}{name}"
            for table in tables if path.exists() else ():
                found[table] = found.get(table, 0) + count(path, table)
    if not (directory / "minutes.sqlite").exists() and "incidents" in found:
        # Version 0.3.0 had no outbox: its incidents go to the history too.
        found["outbox"] = found["outbox"] or found["incidents"]
    return {table: number for table, number in found.items() if number}


@pytest.fixture(params=VERSIONS)
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the checkpoint of a release."""
    return Path(shutil.copytree(CHECKPOINTS / request.param, tmp_path / "checkpoint"))


def test_every_row_and_label_is_taken_over_and_the_files_go(checkpoint: Path) -> None:
    """Once; what was there of incidents can be read."""
    monitor = checkpoint / "monitor"
    before = counts(monitor)
    labels = msgspec.json.decode((monitor / "labels.json").read_bytes())
    assert before
    ledger = opened(checkpoint)
    path = monitor / "ledger.sqlite"
    assert {
        table: number
        for tables in TABLES.values()
        for table in tables
        if (number := count(path, table))
    } == before
    left = {one.name for one in monitor.iterdir() if "ledger" not in one.name}
    assert left == {"job.json"}
    stores = Stores.of(ledger, KINDS, 200, True, False)
    assert list(stores.labels["sds"].labels) == labels
    findings = stores.by_kind["sds"].findings
    known = findings.find_incidents(IncidentQuery())
    assert len(known) == before.get("incidents", 0)
    told = [row.sequence for row in pending(findings, Destination.PARQUET)]
    assert told == sorted(told)
    assert all(number >= FIRST for number in told)
    again = opened(checkpoint)
    assert Stores.of(again, KINDS, 200, True, False).labels["sds"].labels == tuple(
        labels
    )


def test_rows_that_a_destination_has_are_not_sent_again(tmp_path: Path) -> None:
    """Although rows of all kinds are numbered together from now on."""
    monitor = Path(shutil.copytree(CHECKPOINTS / "0.13.0", tmp_path / "c")) / "monitor"
    for name, delivered in (("incidents.sqlite", 12), ("mvds-incidents.sqlite", 0)):
        with closing(sqlite3.connect(monitor / name)) as old, old:
            old.execute("DELETE FROM outbox")
            for told in range(11, 15):
                row = (told, "town", b"", 0)
                old.execute("INSERT INTO outbox VALUES (?, ?, ?, ?)", row)
            if delivered:
                old.execute("INSERT INTO delivered VALUES ('topics', ?)", (delivered,))
    ledger = opened(tmp_path / "c")
    with ledger.transaction() as connection:
        rows = connection.execute(
            "SELECT told, prefix FROM outbox ORDER BY told"
        ).fetchall()
        delivered_rows = connection.execute("SELECT * FROM delivered").fetchall()
    assert [prefix for _, prefix in rows] == ["sds"] * 4 + ["mvds"] * 4
    assert delivered_rows == [("sds", "topics", rows[1][0])]


@pytest.mark.parametrize("place", ["copy", "record_start", "unlink"])
def test_import_that_is_killed_is_done_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Before its commit, after it, and between the removal of two files."""
    checkpoint = Path(shutil.copytree(CHECKPOINTS / "0.13.0", tmp_path / "c"))
    before = counts(checkpoint / "monitor")

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    unlink, removed = Path.unlink, []

    def remove(path: Path, missing_ok: bool = False) -> None:
        removed.append(path)
        if len(removed) > 4:
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    with monkeypatch.context() as patches:
        if place == "copy":
            name = "streaming.ledger.importing.read_labels"
            patches.setattr(name, killed)
        elif place == "record_start":
            patches.setattr(importing, "record_start", killed)
        else:
            patches.setattr(Path, "unlink", remove)
        with pytest.raises(KeyboardInterrupt):
            opened(checkpoint)
    opened(checkpoint)
    path = checkpoint / "monitor" / "ledger.sqlite"
    for table, number in before.items():
        assert count(path, table) == number
    left = {one.name for one in path.parent.iterdir() if "ledger" not in one.name}
    assert left == {"job.json"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("labels.json", b"[1,null]", "has the wrong content"),
        ("incidents.sqlite", b"no database" * 500, "file is not a database"),
        ("minutes.sqlite", b"\0" * 4096, "the database has no tables|not a database"),
    ],
)
def test_damaged_older_file_is_named_with_its_remedy(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    """Nothing is taken over, and all files stay."""
    checkpoint = Path(shutil.copytree(CHECKPOINTS / "0.13.0", tmp_path / "c"))
    path = checkpoint / "monitor" / name
    path.write_bytes(content)
    files = {one.name for one in path.parent.iterdir()}
    with pytest.raises(DamagedCheckpoint, match=said) as caught:
        opened(checkpoint)
    assert caught.value.place == path
    assert 'remove its name from "files"' in caught.value.remedy
    assert files <= {one.name for one in path.parent.iterdir()}
    path.unlink()
    identity = path.with_name("job.json")
    stored = msgspec.json.decode(identity.read_bytes())
    stored["files"].remove(name)
    identity.write_bytes(msgspec.json.encode(stored))
    opened(checkpoint)


def test_files_are_copied_again_if_the_start_after_the_copy_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release that wrote them may have continued with them since."""
    checkpoint = Path(shutil.copytree(CHECKPOINTS / "0.15.0", tmp_path / "checkpoint"))
    directory = checkpoint / "monitor"
    monkeypatch.setattr(importing, "record_start", _fail)
    with pytest.raises(OSError, match="disk"):
        opened(checkpoint)
    monkeypatch.undo()
    with closing(sqlite3.connect(directory / "views.sqlite")) as older, older:
        older.execute("INSERT INTO requests (key, digest) VALUES ('sds:a', x'01')")
    before = count(directory / "views.sqlite", "requests")
    opened(checkpoint)
    assert count(directory / "ledger.sqlite", "requests") == before


@pytest.mark.parametrize("version", ["0.5.0", "0.13.0"])
@pytest.mark.parametrize("has_header", [False, True])
def test_start_that_ended_while_the_ledger_was_made_is_repeated(
    tmp_path: Path, version: str, has_header: bool
) -> None:
    """Also on checkpoints of releases that do not list their files."""
    checkpoint = Path(shutil.copytree(CHECKPOINTS / version, tmp_path / "checkpoint"))
    path = checkpoint / "monitor" / "ledger.sqlite"
    path.touch()
    if has_header:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    opened(checkpoint)
    assert count(path, "incidents")


def _fail(*_: object) -> None:
    message = "disk is full"
    raise OSError(message)
