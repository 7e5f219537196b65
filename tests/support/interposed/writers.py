"""What writes files of its own, step by step, each step as a process of its own."""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from connectors.files.record_file import read_records, write_records
from connectors.history.errors import NoHistory
from connectors.history.parquet import QUIET_MS, ParquetHistory
from connectors.history.query import find_incidents
from connectors.history.schema import INCIDENTS
from connectors.storage.disk import with_remedy
from connectors.storage.mvds import SqliteNodeStorage
from connectors.storage.participants import ParticipantStore
from connectors.storage.prolly import SqliteTree
from connectors.storage.reliable_channel import SqliteChannelStorage
from connectors.sweep_results import Finished, opened_sweep, read_sweep
from connectors.waku_rest.spool import Incoming, Spool, Swept
from sds_core.message_channel import MessageChannel
from sds_core.mvds.node import Node
from sds_core.observer.incidents import IncidentQuery
from sds_core.observer.record import RawRecord
from sds_core.planning.experiment import Outcome
from sds_core.prolly.item import Item
from sds_core.prolly.tree import ProllyTree
from streaming.damage import write_atomically
from tests.support.frames import SECOND, START_MS
from tests.support.history.rows import MONDAY_MS, incident_rows, lost
from tests.support.message_channel.stored_speaker import opened as opened_speaker
from tests.support.participants import CHANNEL
from tests.support.streaming.ledger import ledger_in
from tests.support.toy.pipeline import Pipeline

Step = Callable[[Path], None]


class Writer(NamedTuple):
    """A writer of files.

    Attributes:
        steps: Each opens what is in a directory, adds to it, and closes it. One that
            has failed may be taken again.
        state: Returns what the next process finds in a directory, empty or not.
        may_be_again: Whether a step that was taken already changes something.
    """

    steps: Sequence[Step]
    state: Callable[[Path], Any]
    may_be_again: bool = True


def explained(error: Exception) -> str:
    """The line that an operator gets."""
    if isinstance(error, OSError) and error.strerror:
        return with_remedy(f"{error.filename}: {error.strerror}")
    return str(error)


# -- the ledger


def ledger() -> Writer:
    """Batches of a job: records of several channels, then silence, then more."""
    from connectors.recording import load_recording

    records = [one for one in load_recording() if one.partition == 0][:60]
    raw = [
        RawRecord(0, n, one.timestamp_ms, one.key, one.value, list(one.headers))
        for n, one in enumerate(records)
    ]
    end_ms = raw[-1].timestamp_ms
    batches = [
        (raw[:30], raw[29].timestamp_ms),
        (raw[30:], end_ms),
        ([], end_ms + 3_600_000),
    ]
    return Writer(
        [partial(_batch, number, batches) for number in range(len(batches))],
        _ledger_rows,
    )


_pipelines: dict[int, Pipeline] = {}
"""The job before each batch, as Spark has it in its state."""


def _batch(number: int, batches: Sequence[Any], place: Path) -> None:
    place.mkdir(exist_ok=True)
    if number == 0:
        pipeline = Pipeline(place / "monitor")
    else:
        pipeline = copy.copy(_pipelines[number])
        pipeline.move(place / "monitor")
    try:
        pipeline.batch(*batches[number])
    finally:
        pipeline.ledger.close()
    _pipelines.setdefault(number + 1, pipeline)


def _ledger_rows(place: Path) -> dict[str, list[Any]]:
    """What batches have written, without numbers of rows, which may have gaps."""
    ledger = ledger_in(place / "monitor")
    rows = {name: ledger.rows(f"SELECT * FROM {name}") for name in _OF_BATCHES}  # noqa: S608
    ledger.close()
    rows["outbox"] = [row[1:] for row in rows["outbox"]]
    return rows


_OF_BATCHES = (
    "batch",
    "incidents",
    "outbox",
    "minutes",
    "baseline",
    "acknowledgements",
    "parts",
    "remainders",
    "views",
    "labels",
)


# -- the history


def history() -> Writer:
    """Rows of a day, more rows of it, and the merge of their files."""
    first = incident_rows(lost("a", MONDAY_MS), lost("b", MONDAY_MS + 1))
    second = incident_rows(lost("c", MONDAY_MS + 2), lost("a"), first=7)
    return Writer(
        [
            partial(_add_rows, first),
            partial(_add_rows, second),
            lambda place: ParquetHistory(place).compact(MONDAY_MS * 2 + QUIET_MS),
        ],
        _found_incidents,
    )


def _add_rows(rows: list[Any], place: Path) -> None:
    ParquetHistory(place / "history").write(INCIDENTS, rows)


def _found_incidents(place: Path) -> set[str]:
    try:
        found = find_incidents(place / "history", IncidentQuery())
    except NoHistory:
        return set()
    return {str(one) for one in found}


# -- files that are replaced


def report() -> Writer:
    """A report, in a directory that is made, then a longer one in its place."""

    def step(length: int, place: Path) -> None:
        write_atomically(place / "reports" / "report.json", "x" * length)

    def state(place: Path) -> int | None:
        path = place / "reports" / "report.json"
        return len(path.read_text()) if path.exists() else None

    return Writer([partial(step, 10), partial(step, 200_000)], state)


def export() -> Writer:
    """A file of records."""

    def step(count: int, place: Path) -> None:
        records = [RawRecord(0, n, n, b"k", bytes(5_000), []) for n in range(count)]
        write_records(records, place / "records.jsonl.gz")

    def state(place: Path) -> int | None:
        path = place / "records.jsonl.gz"
        return len(list(read_records(path))) if path.exists() else None

    return Writer([partial(step, 3), partial(step, 9)], state)


def sweep() -> Writer:
    """Runs of a sweep, then their table."""
    grid = {
        "base": {"participants": 4, "messages_per_day": 1_000},
        "grid": {"loss": [0.0, 0.1]},
        "seeds": 1,
    }

    def step(number: int, place: Path) -> None:
        with opened_sweep(place / "sweep", grid, "1") as opened:
            outcome = Outcome(*([float(number)] * len(Outcome._fields)))
            opened.add(Finished.of(number, 0.5, outcome))
            if len(opened.results.runs) == 2:
                opened.finish()

    def state(place: Path) -> int:
        if not (place / "sweep" / "grid.json").exists():
            return 0
        return len(read_sweep(place / "sweep").runs)

    return Writer([partial(step, 0), partial(step, 1)], state)


# -- databases


def spool() -> Writer:
    """Two pages of a node, of which Kafka has taken the first record between them."""

    def step(number: int, place: Path) -> None:
        spool = Spool(place / "state", "tap", "new")
        try:
            if number == 1:
                spool.written(spool.pending(1))
                return
            page = [
                Incoming(bytes([number, n]) * 16, b"town", bytes(2_000), (), START_MS)
                for n in range(3)
            ]
            spool.accept(page, START_MS)
            spool.set_swept("http://node", Swept(1, number + 2))
        except sqlite3.Error as error:
            raise RuntimeError(spool.failure(error)) from error
        finally:
            spool.close()

    def state(place: Path) -> Any:
        spool = Spool(place / "state", "tap", "new")
        try:
            return spool.last_seq, spool.count, spool.pending(9), spool.size_bytes
        finally:
            spool.close()

    return Writer([partial(step, n) for n in range(3)], state, may_be_again=False)


def reliable_channel() -> Writer:
    """Entries of a journal, and a state that replaces them."""

    def step(number: int, place: Path) -> None:
        with SqliteChannelStorage(place / "alice.sqlite") as storage:
            if number == 2:
                storage.replace(bytes(9_000))
            else:
                storage.append(b"%d" % number * 3_000)

    def state(place: Path) -> Any:
        with SqliteChannelStorage(place / "alice.sqlite") as storage:
            stored = storage.load()
            entries = storage._entries()  # noqa: SLF001 - also without a state
            return stored and stored.state, list(entries)

    return Writer([partial(step, n) for n in range(4)], state, may_be_again=False)


def node_of_mvds() -> Writer:
    """A node with a group, then messages."""
    group = b"g" * 32

    def step(number: int, place: Path) -> None:
        node = Node(b"alice")
        node.add_group(group, [b"bob"])
        for n in range(number):
            node.append(group, b"%d" % n * 500, n)
        with SqliteNodeStorage(place / "node.sqlite") as storage:
            storage.store(node.snapshot())

    def state(place: Path) -> Any:
        with SqliteNodeStorage(place / "node.sqlite") as storage:
            return str(storage.load())

    return Writer([partial(step, n) for n in range(3)], state)


def participants() -> Writer:
    """A participant that sends."""

    def opened(place: Path) -> ParticipantStore:
        path = place / "participants.sqlite"
        return ParticipantStore(path, survives_power_loss=True)

    def step(number: int, place: Path) -> None:
        with opened(place) as store:
            alice = opened_speaker(store)
            if f"m{number}" not in alice.log:
                now_ms = START_MS + number * SECOND
                alice.send(b"x" * 100, now_ms, message_id=f"m{number}")
            store.append(alice)

    def state(place: Path) -> list[str]:
        with opened(place) as store:
            alice: MessageChannel = opened_speaker(store)
            assert alice.channel_id == CHANNEL
            return [str(one) for one in alice.log]

    return Writer([partial(step, n) for n in range(3)], state)


def tree() -> Writer:
    """A Prolly tree that grows."""
    items = [Item(10 * n, n.to_bytes(32, "little")) for n in range(1, 400)]
    Random(1).shuffle(items)

    def opened(place: Path) -> SqliteTree:
        return SqliteTree(place / "tree.sqlite", 16, survives_power_loss=True)

    def step(number: int, place: Path) -> None:
        with opened(place) as stored:
            stored.store(ProllyTree(items[: number * 100]))

    def state(place: Path) -> int:
        with opened(place) as stored:
            return len(stored.tree)

    return Writer([partial(step, n) for n in range(1, 4)], state)


WRITERS: dict[str, Callable[[], Writer]] = {
    "ledger": ledger,
    "history": history,
    "report": report,
    "export": export,
    "sweep": sweep,
    "spool of the mirror": spool,
    "reliable channel": reliable_channel,
    "node of MVDS": node_of_mvds,
    "participants": participants,
    "tree": tree,
}
