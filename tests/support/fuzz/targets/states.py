"""Decoders of what a checkpoint holds.

An input of a view's state begins with a byte that is its version.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from sds_core.observer import blob
from sds_core.observer.blob import UnknownBlobVersion
from tests.support.frames import START_MS
from tests.support.fuzz.documents import read_msgpack, write_msgpack
from tests.support.fuzz.mutation import changed_bytes, changed_tree
from tests.support.fuzz.target import Target
from tests.support.golden.blobs import BLOBS, KINDS

_DAY_MS = 86_400_000


def _genuine(name: str) -> list[bytes]:
    return [
        bytes([int(path.parent.name[1:])]) + path.read_bytes()
        for path in sorted(Path(BLOBS).glob(f"v*/{name}.*.bin"))
    ]


def _changed(random: Random, value: bytes, other: bytes) -> bytes:
    """One of both trees changed; else bytes."""
    if random.random() < 0.5:
        return changed_bytes(random, value, other)
    version = random.choice((value[0], value[0], other[0]))
    head, rest = blob.split(value[1:])
    parts = [head, bytes(rest)]
    at = random.randrange(2)
    try:
        parts[at] = write_msgpack(changed_tree(random, read_msgpack(parts[at])))
    except (ValueError, TypeError, OverflowError):
        return changed_bytes(random, value, other)
    length = len(parts[0]).to_bytes(blob.LENGTH_BYTES, "big")
    return bytes([version]) + length + parts[0] + parts[1]


def _check(kind: Any) -> Callable[[bytes], bool]:
    def check(data: bytes) -> bool:
        if not data:
            return False
        try:
            view = kind.view.from_blob(data[0], data[1:])
        except (UnknownBlobVersion, msgspec.DecodeError):
            return False
        again = kind.view.from_blob(kind.blob_version, view.to_blob())
        assert again.totals == view.totals
        again.apply([], START_MS + _DAY_MS)
        return True

    return check


TARGETS = tuple(
    Target(f"state-{name}", lambda name=name: _genuine(name), _changed, _check(kind))
    for name, kind in KINDS.items()
)
