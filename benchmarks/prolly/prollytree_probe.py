"""Measures the package `prollytree`; run by `other_tree.py` in a process of its own.

    python -m benchmarks.prolly.prollytree_probe ITEMS STORE

ITEMS has packed keys in order. Standard input has the numbers of those that one tree
lacks, and of those that are inserted later, each a line joined by commas. STORE is a
directory in an empty Git repository; without it (`-`) the versioned store is left out.
Standard output has a line of JSON for each thing measured.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

# Installed for this run.
from prollytree import ProllyTree, StorageBackend, VersionedKvStore

from benchmarks.prolly.contenders import timed

_KEY_BYTES = 40
_STAGED = 500
"""Keys per commit: an insertion rewrites all that is staged."""


def main() -> None:
    """Read the arguments, measure and print."""
    path, store = sys.argv[1:]
    data = Path(path).read_bytes()
    keys = [data[at : at + _KEY_BYTES] for at in range(0, len(data), _KEY_BYTES)]
    lacked = set(map(int, sys.stdin.readline().split(",")))
    few = [key for at, key in enumerate(keys) if at not in lacked]
    missing = {keys[at] for at in lacked}
    _tree(keys, few, missing)
    if store != "-":
        _store(Path(store), few, missing)


def _tree(keys: Sequence[bytes], few: Sequence[bytes], missing: set[bytes]) -> None:
    """The tree alone."""
    whole, part = ProllyTree(), ProllyTree()
    _print("build", lambda: whole.insert_batch([(key, b"") for key in keys]))
    part.insert_batch([(key, b"") for key in few])
    _print(
        "difference",
        lambda: part.diff(whole),
        lambda found: set(found["added"]) == missing,
        lambda found: f"{len(found['added'])} found",
    )
    first, *rest = sorted(missing)
    _print("insert 1", lambda: part.insert(first, b""))
    _print(
        f"insert {len(rest)}", lambda: part.insert_batch([(key, b"") for key in rest])
    )
    if part.get_root_hash() != whole.get_root_hash():
        raise SystemExit("the same keys give another root")


def _store(path: Path, few: Sequence[bytes], missing: Collection[bytes]) -> None:
    """The versioned store, in memory."""
    os.chdir(path)
    store = VersionedKvStore(str(path), StorageBackend.InMemory)

    def commit(keys: Sequence[bytes]) -> str:
        name = ""
        for at in range(0, len(keys), _STAGED):
            for key in keys[at : at + _STAGED]:
                store.insert(key, b"")
            name = store.commit("more")
        return name

    before = commit(few)
    after = commit(sorted(missing))
    _print(
        "difference of two commits",
        lambda: store.diff(before, after),
        lambda found: {one.key for one in found} == set(missing),
        lambda found: f"{len(found)} found",
    )


def _print(
    what: str,
    work: Callable[[], Any],
    is_right: Callable[[Any], bool] = lambda _: True,
    note: Callable[[Any], str] = lambda _: "",
) -> None:
    value, spent_ms = timed(work)
    right = is_right(value)
    row = {"what": what, "ms": spent_ms if right else None, "note": note(value)}
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
