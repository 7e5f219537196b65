"""Decoders of what a checkpoint holds.

An input of a view's state begins with a byte that is its version. The other inputs are
files of a checkpoint.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from sds_core.observer import blob
from sds_core.observer.blob import DamagedBlob, UnknownBlobVersion
from sds_core.observer.incidents import Incident, IncidentKind, IncidentQuery
from sds_core.observer.kinds import Kinds
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from streaming.batch_log import read_batch_log
from streaming.checkpoint import (
    CheckpointIdentity,
    CheckpointMismatch,
    check_identity,
)
from streaming.chunk import FORGET
from streaming.damage import LEDGER, DamagedCheckpoint
from streaming.ledger.findings import Findings
from streaming.ledger.importing import open_ledger, read_labels
from streaming.ledger.labels import LabelLedger
from streaming.ledger.ledger import Ledger
from streaming.ledger.view_register import ForgottenView, ViewRegister
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
            except UnknownBlobVersion:
                return False
            except (DamagedCheckpoint, CheckpointMismatch) as error:
                check_text(str(error), checkpoint)
                return False
        return True

    return write_and_check


def _open_ledger(_: Path, path: Path) -> None:
    ledger = Ledger(path, expected=True)
    register = ViewRegister(ledger)
    register.keys()
    register.requests(0, register.newest_request())
    register.remainders(Kinds([CHANNELS]))
    Findings(ledger, CHANNELS).find_incidents(IncidentQuery())
    LabelLedger(ledger, CHANNELS.prefix, 200)


def _ledger() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        ledger = Ledger(Path(directory) / LEDGER)
        register = ViewRegister(ledger)
        register.set_keys(["sds:town", "sds:square"])
        register.request([("sds:town", FORGET)])
        town = ForgottenView(CHANNELS, ChannelTotals(messages=3), in_other=True)
        register.add_forgotten([town])
        LabelLedger(ledger, CHANNELS.prefix, 200).admit(["town"])
        lost = Incident(IncidentKind.LOST, "m", "ana", 1, 2)
        Findings(ledger, CHANNELS).record_incidents({"town": [lost]})
        with ledger.transaction() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return (Path(directory) / LEDGER).read_bytes()


def _import(checkpoint: Path, path: Path) -> None:
    identity = CheckpointIdentity(_TOPIC, False, files=[path.name])
    _, ledger = open_ledger(checkpoint, identity, Kinds([CHANNELS]), None, 1)
    Findings(ledger, CHANNELS).find_incidents(IncidentQuery())


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
        _in_checkpoint("monitor/labels.json", lambda _, path: read_labels(path)),
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
        "ledger",
        lambda: [_ledger()],
        changed_bytes,
        _in_checkpoint("monitor/ledger.sqlite", _open_ledger),
        500,
    ),
    Target(
        "incidents-database",
        lambda: _files("monitor/incidents.sqlite"),
        changed_bytes,
        _in_checkpoint("monitor/incidents.sqlite", _import),
        500,
    ),
)
