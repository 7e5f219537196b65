"""Loads the compiled form of the rules if there is one of exactly these sources.

`python -m compiler` makes it. Without it the same sources run as they are. A change of
a module runs at once, interpreted, until the core is compiled again: all modules are
compiled or none, because each knows the structures of the others.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from types import ModuleType

_OBSERVER = """
    columns deadlines fingerprint memory minutes record row_index rule_settings table
    tap_view
"""

_SDS = """
    acknowledgements capacity channel_model channel_view copies deliveries digest
    digest_parts evidence filters forgotten_messages frame_filter gap_table gaps
    health history_heads messages missing_deliveries outline_reader own_ids
    participants receivers repairs requests seen_frames seen_ids segment_rows start
    start_filters
"""

_MVDS = """
    awaited copies deliveries digest exchanges frame groups ledger messages peers
    shard_model shard_view split
"""

MODULES = (
    *(f"sds_core.observer.{name}" for name in _OBSERVER.split()),
    *(f"sds_core.observer.sds.{name}" for name in _SDS.split()),
    *(f"sds_core.observer.mvds.{name}" for name in _MVDS.split()),
    "sds_core.wire.outline",
    "sds_core.wire.segment_header",
)
"""The modules that are compiled."""

SHARED = "sds_core.shared"
"""What the compiled modules have in common; it has no source here."""

SWITCH = "SDS_MONITOR_CORE"
"""Environment variable: `interpreted` or `compiled`, which is an error without one."""

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def directory(root: str = _ROOT) -> str:
    """Where the compiled form of the sources under a directory is, if there is one."""
    digest = hashlib.sha256()
    for name in MODULES:
        path = os.path.join(root, *name.split(".")) + ".py"
        with open(path, "rb") as source:
            digest.update(source.read())
    return os.path.join(root, "sds_core", "core", digest.hexdigest()[:16])


class _Finder(MetaPathFinder):
    """Finds the compiled form of the modules."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """See `MetaPathFinder`."""
        if fullname not in (*MODULES, SHARED):
            return None
        file = os.path.join(self._directory, fullname + EXTENSION_SUFFIXES[0])
        loader = ExtensionFileLoader(fullname, file)
        return ModuleSpec(fullname, loader, origin=file)


def is_compiled() -> bool:
    """Whether this process runs the compiled form."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def load() -> None:
    """Let the modules be imported in their compiled form, if there is one.

    Raises:
        ImportError: `SWITCH` asks for a compiled form, and these sources have none.
    """
    wanted = os.environ.get(SWITCH)
    if wanted == "interpreted" or is_compiled():
        return
    try:
        found = directory()
        files = os.listdir(found)
    except OSError:
        found, files = "", []
    if {name + EXTENSION_SUFFIXES[0] for name in (*MODULES, SHARED)} <= set(files):
        sys.meta_path.insert(0, _Finder(found))
    elif wanted == "compiled":
        message = f"{SWITCH}=compiled: these sources are not compiled; run `make core`"
        raise ImportError(message)
