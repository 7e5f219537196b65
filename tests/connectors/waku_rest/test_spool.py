"""What a mirror stores on disk, also if it is killed at any moment."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from connectors.waku_rest.spool import (
    Incoming,
    Spool,
    StateUnusable,
    Swept,
    open_spool,
)
from sds_core.mirror.figures import Loss
from tests.support.small_disk import fill, needs_root, small_disk

NODE = "http://node"


def incoming(number: int, size: int = 10) -> Incoming:
    """A message whose hash is its number, and which was sent then."""
    value = b"%d:" % number + bytes(size)
    headers = (("source", b"relay"),)
    return Incoming(_hash(number), b"town", value, headers, number)


def _hash(number: int) -> bytes:
    return number.to_bytes(32, "big")


@contextmanager
def opened(directory: Path) -> Iterator[Spool]:
    """A spool that is read into, closed in order."""
    with open_spool(directory, None, "tap") as spool:
        spool.begin()
        yield spool
        spool.end()


def seqs(spool: Spool) -> list[int]:
    """Numbers of the frames that wait, in the order of writing."""
    return [one.seq for one in spool.pending(10_000) if not one.is_heartbeat]


def test_numbers_have_no_holes_over_clean_starts(tmp_path: Path) -> None:
    """A mirror that was closed in order does not count as killed."""
    for start in range(3):
        with open_spool(tmp_path, None, "tap") as spool:
            assert not spool.begin()
            assert spool.accept([incoming(2 * start), incoming(2 * start + 1)], 5) == 2
            spool.end()
    with opened(tmp_path) as spool:
        assert seqs(spool) == [1, 2, 3, 4, 5, 6]
        assert spool.last_seq == 6
        assert spool.observer == "tap"


def test_no_message_is_stored_twice(tmp_path: Path) -> None:
    """Neither within a page, nor later, nor after a restart."""
    with opened(tmp_path) as spool:
        assert spool.accept([incoming(1), incoming(2), incoming(1)], 5) == 2
        spool.written(spool.pending(10))
        assert spool.accept([incoming(2), incoming(3)], 6) == 1
    with opened(tmp_path) as spool:
        assert spool.accept([incoming(1), incoming(2), incoming(3)], 7) == 0
        assert seqs(spool) == [3]
        assert spool.known(map(_hash, range(2_000))) == {_hash(n) for n in (1, 2, 3)}


def test_unwanted_message_is_remembered_without_a_number(tmp_path: Path) -> None:
    """So it need not be fetched from a store again."""
    with opened(tmp_path) as spool:
        assert spool.accept([], 5, {_hash(1): 1}) == 0
        assert spool.accept([incoming(2)], 5, {_hash(1): 1, _hash(3): 3}) == 1
        assert spool.known(map(_hash, range(9))) == {_hash(1), _hash(2), _hash(3)}
        assert seqs(spool) == [1]


def state_of(spool: Spool) -> tuple[object, ...]:
    """All that a spool knows."""
    return (
        spool.last_seq,
        spool.size_bytes,
        spool.count,
        spool.forgotten_ms,
        dict(spool.losses),
        spool.pending(100),
        spool.known(map(_hash, range(100))),
        spool.swept(NODE),
    )


def test_kill_after_any_step_loses_nothing(tmp_path: Path) -> None:
    """The files have that step's result; only one number is skipped."""
    steps: list[Callable[[Spool], object]] = [
        lambda spool: spool.accept([incoming(1), incoming(2)], 1_000),
        lambda spool: spool.beat(1_001),
        lambda spool: spool.set_swept(NODE, Swept(1, 500)),
        lambda spool: spool.written(spool.pending(1)),
        lambda spool: spool.skip_number(Loss.FULL_PAGE),
        lambda spool: spool.accept([incoming(3), incoming(2)], 1_002, {_hash(9): 9}),
        lambda spool: spool.set_swept(NODE, Swept(1, 900)),
        lambda spool: spool.forget_before(1_001),
        lambda spool: spool.written(spool.pending(100)),
        lambda spool: spool.accept([incoming(4)], 1_003),
    ]
    with opened(tmp_path / "state") as spool:
        for number, step in enumerate(steps):
            step(spool)
            copy = tmp_path / f"killed-{number}"
            shutil.copytree(tmp_path / "state", copy)
            with open_spool(copy, None, "other") as again:
                assert state_of(again) == state_of(spool)
                assert again.observer == "tap"
                assert again.begin()
                again.skip_number(Loss.UNCLEAN_START)
                again.accept([incoming(50)], 2_000)
                assert again.pending(100)[-1].seq == spool.last_seq + 2
                again.end()
            with open_spool(copy, None, "other") as closed:
                assert not closed.begin()


def start_and_fail(directory: Path, *, reads: bool) -> bool | None:
    """Have an error end a mirror; returns whether it found that one was killed."""
    was_killed = None
    with suppress(KeyError), open_spool(directory, None, "tap") as spool:
        was_killed = spool.begin() if reads else None
        raise KeyError
    return was_killed


def test_kill_is_remembered_until_it_was_handled(tmp_path: Path) -> None:
    """Even if the next mirror fails early or is killed too."""
    assert start_and_fail(tmp_path, reads=True) is False
    start_and_fail(tmp_path, reads=False)
    assert start_and_fail(tmp_path, reads=True)
    with open_spool(tmp_path, None, "tap") as spool:
        assert spool.begin()
        spool.end()
    with open_spool(tmp_path, None, "tap") as spool:
        assert not spool.begin()


def test_losses_are_counted_over_starts(tmp_path: Path) -> None:
    """By cause; a state of 1.0.0 has none."""
    with opened(tmp_path) as spool:
        spool.accept([incoming(1)], 5)
    with closing(sqlite3.connect(tmp_path / "mirror.sqlite")) as database, database:
        database.execute("DROP TABLE loss")
    none = dict.fromkeys(Loss, 0)
    for start in range(3):
        with opened(tmp_path) as spool:
            assert spool.losses == none | {Loss.UNCLEAN_START: start}
            spool.skip_number(Loss.UNCLEAN_START)
            assert spool.losses == none | {Loss.UNCLEAN_START: start + 1}
    with opened(tmp_path) as spool:
        spool.skip_number(Loss.FULL_PAGE)
    with opened(tmp_path) as spool:
        assert spool.losses == none | {Loss.UNCLEAN_START: 3, Loss.FULL_PAGE: 1}


def test_a_mirror_that_never_read_was_not_killed(tmp_path: Path) -> None:
    """It may have failed because a port was in use."""
    start_and_fail(tmp_path, reads=False)
    with open_spool(tmp_path, None, "tap") as spool:
        assert not spool.begin()


def test_heartbeats_keep_their_place_and_have_the_last_number(tmp_path: Path) -> None:
    """They must not overtake the frames that they count."""
    with opened(tmp_path) as spool:
        spool.beat(1)
        spool.accept([incoming(1), incoming(2)], 2)
        spool.beat(3)
        spool.skip_number(Loss.FULL_PAGE)
        spool.beat(4)
        spool.accept([incoming(3)], 5)
        found = [(one.seq, one.is_heartbeat) for one in spool.pending(10)]
    assert found == [
        (0, True),
        (1, False),
        (2, False),
        (2, True),
        (3, True),
        (4, False),
    ]


def test_waiting_records_are_counted(tmp_path: Path) -> None:
    """A restart counts the same, and the count is 0 once all are written."""
    with opened(tmp_path) as spool:
        assert (spool.size_bytes, spool.count) == (0, 0)
        spool.accept([incoming(1, size=1_000), incoming(2)], 7)
        spool.beat(8)
        size = spool.size_bytes
        assert size > 1_000
        assert spool.count == 3
    with opened(tmp_path) as spool:
        assert (spool.size_bytes, spool.count) == (size, 3)
        spool.written(spool.pending(2))
        assert spool.count == 1
        spool.written(spool.pending(10))
        assert (spool.size_bytes, spool.count) == (0, 0)
        assert spool.pending(10) == []


def sent(number: int, sent_ms: int) -> Incoming:
    """A message with a time of its sender."""
    return incoming(number)._replace(sent_ms=sent_ms)


def test_forgetting_is_recorded(tmp_path: Path) -> None:
    """From then on, older messages must not be taken for new ones."""
    with opened(tmp_path) as spool:
        spool.forget_before(500)
        assert spool.forgotten_ms == 0
        spool.accept([sent(1, 1_000)], 1_000)
        spool.accept([sent(2, 2_000)], 2_000)
        spool.forget_before(1_001)
        assert spool.known([_hash(1), _hash(2)]) == {_hash(2)}
        spool.forget_before(1_500)
    with opened(tmp_path) as spool:
        assert spool.forgotten_ms == 1_001


def test_clock_of_the_mirror_does_not_say_what_is_forgotten(tmp_path: Path) -> None:
    """Stores are read by the times of senders, and the clock may be hours fast."""
    with opened(tmp_path) as spool:
        page = [sent(1, 1_000), sent(2, 3_000), sent(3, 2_000)]
        spool.accept(page, 90_000, {_hash(4): 2_500})
        spool.accept([sent(5, 4_000)], 91_000)
        spool.forget_before(90_500)
        assert spool.known(map(_hash, range(9))) == {_hash(5)}
        assert spool.forgotten_ms == 3_001


def test_message_from_the_future_is_kept_until_then(tmp_path: Path) -> None:
    """The clock may be hours slow; but no disk holds what is years ahead."""
    day_ms = 86_400_000
    with opened(tmp_path) as spool:
        page = [sent(1, 1_000), sent(2, 9_000), sent(3, 99 * day_ms)]
        spool.accept(page, 1_500, {_hash(4): 8_000})
        spool.forget_before(8_500)
        assert spool.known(map(_hash, range(9))) == {_hash(2), _hash(3)}
        assert spool.forgotten_ms == 8_001
        spool.forget_before(day_ms + 1_501)
        assert spool.known(map(_hash, range(9))) == set()
        assert spool.forgotten_ms == day_ms + 1_501
    with closing(sqlite3.connect(tmp_path / "mirror.sqlite")) as database:
        assert database.execute("SELECT * FROM sent").fetchall() == []


_TABLES_OF_1_0_0 = """
CREATE TABLE mirror (
    observer TEXT NOT NULL,
    last_seq INTEGER NOT NULL,
    is_closed INTEGER NOT NULL,
    forgotten_ms INTEGER NOT NULL
);
CREATE TABLE spool (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    key BLOB,
    value BLOB NOT NULL,
    headers BLOB NOT NULL
);
CREATE TABLE seen (
    hash BLOB PRIMARY KEY,
    at_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX seen_by_time ON seen (at_ms);
CREATE TABLE swept (
    node TEXT PRIMARY KEY,
    from_ms INTEGER NOT NULL,
    up_to_ms INTEGER NOT NULL
);
INSERT INTO mirror VALUES ('old', 2, TRUE, 90000);
"""


def test_state_of_1_0_0_goes_on_and_can_go_back(tmp_path: Path) -> None:
    """1.0.0 stored hashes without the times of senders."""
    database = sqlite3.connect(tmp_path / "mirror.sqlite")
    add = "INSERT INTO seen VALUES (?, ?)"
    with closing(database), database:
        database.executescript(_TABLES_OF_1_0_0)
        database.execute(add, (_hash(1), 100_000))
        database.execute(add, (_hash(2), 300_000))
    with opened(tmp_path) as spool:
        assert (spool.observer, spool.last_seq, spool.forgotten_ms) == (
            "old",
            2,
            # 1.0.0 deleted hashes up to 90 s by its own clock. A sender's clock may
            # have been fast.
            150_000,
        )
        assert spool.accept([sent(1, 1), sent(3, 250_000)], 250_000) == 1
        spool.forget_before(200_000)
        assert spool.known(map(_hash, range(9))) == {_hash(2), _hash(3)}
        # A sender's clock may have been fast.
        assert spool.forgotten_ms == 160_001
    database = sqlite3.connect(tmp_path / "mirror.sqlite")
    with closing(database), database:
        database.execute(add, (_hash(4), 400_000))
    with opened(tmp_path) as spool:
        assert spool.forgotten_ms == 160_001


@pytest.mark.parametrize(
    ("now_ms", "forgotten_ms"),
    [(80_000, 80_000), (95_000, 90_000), (-2_592_000_000, 90_000)],
)
def test_time_that_1_0_0_took_from_a_fast_clock_is_not_waited_for(
    now_ms: int, forgotten_ms: int, tmp_path: Path
) -> None:
    """Until then, the mirror would read no store; but the clock may be unset now."""
    database = sqlite3.connect(tmp_path / "mirror.sqlite")
    with closing(database), database:
        database.executescript(_TABLES_OF_1_0_0)
    for later_ms in (0, 1_000):
        with open_spool(tmp_path, None, "tap", now_ms + later_ms) as spool:
            assert spool.forgotten_ms == forgotten_ms + 60_000


def test_full_disk_changes_nothing(tmp_path: Path) -> None:
    """Once there is space the same page gets the next numbers."""
    with opened(tmp_path) as spool:
        spool.accept([incoming(1)], 1)
        database = spool._database  # noqa: SLF001 - to limit the disk
        (used,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {used}")
        page = [incoming(number, size=50_000) for number in range(2, 5)]
        before = state_of(spool)
        with pytest.raises(Exception, match="full"):
            spool.accept(page, 2)
        assert state_of(spool) == before
        database.execute("PRAGMA max_page_count = 100000")
        assert spool.accept(page, 3) == 3
        assert seqs(spool) == [1, 2, 3, 4]


@needs_root
def test_start_on_a_full_disk_does_not_call_for_another_state(tmp_path: Path) -> None:
    """It opens once there is space; new and existing states alike."""
    with small_disk(tmp_path / "disk", "4m") as disk:
        with opened(disk / "old"):
            pass
        fill(disk)
        for state in (disk / "old", disk / "new"):
            with pytest.raises(OSError, match="No space left on device") as caught:
                Spool(state, None, "tap")
            assert caught.value.errno == errno.ENOSPC
            assert str(caught.value.filename).startswith(str(state))
        (disk / "filler").unlink()
        with opened(disk / "old"):
            pass


@pytest.mark.parametrize(
    "change",
    [
        "spool SET headers = x'c1'",
        "spool SET headers = 'text'",
        "spool SET seq = 'text'",
        "spool SET value = 'text'",
        "mirror SET last_seq = 'text'",
        "loss SET number = 'text'",
    ],
)
def test_damaged_value_is_refused(tmp_path: Path, change: str) -> None:
    """As SQLite does not notice it; the error names the file."""
    with opened(tmp_path) as spool:
        spool.accept([incoming(1)], 5)
        spool.skip_number(Loss.FULL_PAGE)
    with closing(sqlite3.connect(tmp_path / "mirror.sqlite")) as database, database:
        database.execute(f"UPDATE {change}")
    with (
        pytest.raises(StateUnusable, match=r"a value in mirror.sqlite is damaged"),
        open_spool(tmp_path, None, "tap") as spool,
    ):
        spool.pending(9)


def test_two_mirrors_on_one_state_are_refused(tmp_path: Path) -> None:
    """The error says what to do; the state is free when the first ends."""
    with opened(tmp_path), pytest.raises(StateUnusable, match="use another --state"):
        Spool(tmp_path, None, "tap")
    with opened(tmp_path):
        pass


def test_another_observer_is_refused(tmp_path: Path) -> None:
    """Numbers of two taps would be mixed; the lock is released."""
    with open_spool(tmp_path, "mine", "new") as spool:
        assert spool.observer == "mine"
    with pytest.raises(StateUnusable, match="belongs to observer mine, not yours"):
        Spool(tmp_path, "yours", "new")
    with open_spool(tmp_path, "mine", "new"):
        pass


def test_unusable_state_is_refused(tmp_path: Path) -> None:
    """For example, a file in place of the directory or of the database."""
    (tmp_path / "file").touch()
    with pytest.raises(StateUnusable, match=r"file cannot be used \(File exists\)"):
        Spool(tmp_path / "file", None, "tap")
    (tmp_path / "mirror.sqlite").write_bytes(b"no database" * 100)
    for _ in range(2):
        with pytest.raises(StateUnusable, match="not a database"):
            Spool(tmp_path, None, "tap")
