"""Decoders of what a checkpoint holds.

An input of a view's state begins with a byte that is its version. The other inputs are
files of a checkpoint.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from sds_core.observer import blob
from sds_core.observer.blob import DamagedBlob, UnknownBlobVersion
from sds_core.observer.incidents import IncidentQuery
from sds_core.observer.kinds import Kinds
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from streaming.batch_log import read_batch_log
from streaming.checkpoint import CheckpointMismatch, check_identity
from streaming.damage import DamagedCheckpoint
from streaming.findings import Findings
from streaming.keys import FORGET
from streaming.labels import LabelLedger
from streaming.view_register import ForgottenView, ViewRegister
from tests.support.fuzz.documents import (
    read_json,
    read_msgpack,
    write_json,
    write_msgpack,
)
from tests.support.fuzz.errors import check_text
from tests.support.fuzz.mutation import changed_bytes, changed_document, changed_tree
from tests.support.fuzz.target import Target
from tests.support.golden.blobs import BLOBS, KINDS

_CHECKPOINTS = BLOBS.parent / "checkpoints"
_TOPIC = "sds.frames"


def _states(name: str) -> list[bytes]:
    return [
        bytes([int(path.parent.name[1:])]) + path.read_bytes()
        for path in sorted(BLOBS.glob(f"v*/{name}.*.bin"))
    ]


def _changed_state(random: Random, value: bytes, other: bytes) -> bytes:
    """One of both trees changed; else bytes."""
    if random.random() < 0.5:
        return changed_bytes(random, value, other)
    head, rest = blob.split(value[1:])
    parts = [head, bytes(rest)]
    at = random.randrange(2)
    try:
        parts[at] = write_msgpack(changed_tree(random, read_msgpack(parts[at])))
    except (ValueError, TypeError, OverflowError):
        return changed_bytes(random, value, other)
    length = len(parts[0]).to_bytes(blob.LENGTH_BYTES, "big")
    return value[:1] + length + parts[0] + parts[1]


def _check_state(kind: Any, genuine: Callable[[], list[bytes]]) -> Any:
    def check(data: bytes) -> bool:
        if not data:
            return False
        try:
            view = kind.view.from_blob(data[0], data[1:])
        except (UnknownBlobVersion, DamagedBlob) as error:
            check_text(str(error))
            return False
        if data[0] >= kind.checksum_since:
            # Spark stores the version beside the state, outside of its checksum.
            known = {one[1:] for one in genuine()}
            assert data[1:] in known, "changed bytes were accepted"
            assert kind.view.from_blob(kind.blob_version, view.to_blob())
        return True

    return check


def _state_target(name: str, kind: Any) -> Target:
    return Target(
        f"state-{name.replace('_', '-')}",
        lambda: _states(name),
        _changed_state,
        _check_state(kind, lambda: _states(name)),
    )


def _files(path: str) -> list[bytes]:
    return [one.read_bytes() for one in sorted(_CHECKPOINTS.glob(f"*/{path}"))]


def _changed_json(random: Random, value: bytes, other: bytes) -> bytes:
    return changed_document(random, value, read_json, write_json)


def _changed_lines(random: Random, value: bytes, other: bytes) -> bytes:
    """One line of JSON changed."""
    lines = value.split(b"\n")
    at = random.randrange(len(lines))
    lines[at] = _changed_json(random, lines[at], b"")
    return b"\n".join(lines)


def _in_checkpoint(
    name: str, check: Callable[[Path, Path], object]
) -> Callable[[bytes], bool]:
    """Check a checkpoint with this file; only the errors of a checkpoint may leave."""

    def write_and_check(data: bytes) -> bool:
        with tempfile.TemporaryDirectory() as directory:
            checkpoint = Path(directory)
            path = checkpoint / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            try:
                check(checkpoint, path)
            except (DamagedCheckpoint, CheckpointMismatch) as error:
                check_text(str(error), checkpoint)
                return False
        return True

    return write_and_check


def _open_findings(checkpoint: Path, path: Path) -> None:
    Findings(path, 1, True).find_incidents(IncidentQuery())


def _views_database() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "views.sqlite"
        register = ViewRegister(path)
        register.set_keys(["sds:town", "sds:square"])
        register.request([("sds:town", FORGET)])
        town = ForgottenView(CHANNELS, ChannelTotals(messages=3), in_other=True)
        register.record_batch(4, [], [], [town])
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.read_bytes()


def _open_register(_: Path, path: Path) -> None:
    register = ViewRegister(path, expected=True)
    register.keys()
    register.requests(0, register.newest_request())
    register.remainders(Kinds([CHANNELS]))


TARGETS = (
    *(_state_target(name, kind) for name, kind in KINDS.items()),
    Target(
        "batch-log",
        lambda: _files("offsets/0"),
        _changed_lines,
        _in_checkpoint("offsets/0", lambda checkpoint, _: read_batch_log(checkpoint)),
        3_000,
    ),
    Target(
        "labels",
        lambda: [b'["a", "b"]', b"[]"],
        _changed_json,
        _in_checkpoint("monitor/labels.json", lambda _, path: LabelLedger(path, 200)),
    ),
    Target(
        "identity",
        lambda: [
            b'{"topic":"sds.frames","report_detail":true,"starts":3,"files":[]}',
            b'{"topic":"sds.frames","report_detail":false}',
        ],
        _changed_json,
        _in_checkpoint(
            "monitor/job.json",
            lambda checkpoint, _: check_identity(checkpoint, _TOPIC, False, False),
        ),
    ),
    Target(
        "views-database",
        lambda: [_views_database()],
        changed_bytes,
        _in_checkpoint("monitor/views.sqlite", _open_register),
        500,
    ),
    Target(
        "incidents-database",
        lambda: _files("monitor/incidents.sqlite"),
        changed_bytes,
        _in_checkpoint("monitor/incidents.sqlite", _open_findings),
        500,
    ),
)
