"""From messages to the spool, also on a full disk."""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
from collections.abc import Callable

import pytest

from connectors.waku_rest.intake import incoming_of
from sds_core.mirror.figures import Source
from sds_core.waku import WakuMessage
from tests.support.waku_rest.rig import SHARD, Rig, Running, message, until

RigMaker = Callable[..., Rig]


def fill_the_disk(rig: Rig) -> None:
    """Let the spool's file grow no more."""
    database = rig.spool._database  # noqa: SLF001 - there is no smaller disk
    (used,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {used}")


def clear_the_disk(rig: Rig) -> None:
    """Let it grow again."""
    rig.spool._database.execute("PRAGMA max_page_count = 100000")  # noqa: SLF001


def large(number: int) -> WakuMessage:
    """A message that does not fit into what the file has left."""
    return WakuMessage(message(number).payload + bytes(100_000), "/t", number)


def test_full_disk_loses_no_page(
    make_rig: RigMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """The write is retried until there is space; the log says what to do, and when."""
    caplog.set_level("INFO", "sds-monitor")
    rig = make_rig(topics={SHARD: ("/t",)})

    async def script(running: Running) -> None:
        intake = running.intake
        await intake.take([(SHARD, large(1))], Source.RELAY)
        fill_the_disk(rig)
        page = [(SHARD, large(number)) for number in range(2, 6)]
        taking = asyncio.create_task(intake.take(page, Source.RELAY))
        await until(lambda: caplog.records)
        assert not taking.done()
        assert intake.is_full
        clear_the_disk(rig)
        await taking
        assert not intake.is_full

    rig.take(script)
    assert rig.seqs == [1, 2, 3, 4, 5]
    assert rig.figures.accepted[Source.RELAY] == 5
    *failed, again = caplog.records
    assert {one.levelno for one in failed} == {logging.ERROR}
    assert re.fullmatch(
        r"the mirror cannot write to the spool: .*/mirror\.sqlite: No space left on "
        "device; free space on this disk",
        failed[0].message,
    )
    assert re.fullmatch(r"the spool can be written again after \d s", again.message)


def test_a_disk_that_stays_full_ends_the_mirror_with_an_error(
    make_rig: RigMaker,
) -> None:
    """Otherwise it could not be distinguished from an orderly end."""
    rig = make_rig(topics={SHARD: ("/t",)})

    async def script(running: Running) -> None:
        fill_the_disk(rig)
        running.ending.set()
        with pytest.raises(sqlite3.OperationalError, match="full"):
            await running.intake.take([(SHARD, large(1))], Source.RELAY)

    rig.take(script)
    clear_the_disk(rig)
    assert rig.frames == []
    assert rig.figures.last_seq == 0


@pytest.mark.parametrize("timestamp_ns", [0, -1])
def test_invalid_waku_time_gives_no_header(timestamp_ns: int) -> None:
    """Such a header would make a dead letter of a good frame."""
    bad = WakuMessage(b"payload", "/t", timestamp_ns)
    names = [name for name, _ in incoming_of(SHARD, bad, None, "relay").headers]
    assert "waku-timestamp" not in names
    assert {"source", "waku-hash"} <= set(names)
