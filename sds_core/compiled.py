"""Loads compiled modules instead of Python sources, if the modules match the sources.

`python -m compiler` builds the compiled modules. If the source of one module has
changed since the build, Python interprets the sources of all modules, because each
compiled module depends on the C structures of the others.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
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
    "sds_core.wire.parts",
    "sds_core.wire.segment_header",
)

SHARED = "sds_core.shared"
"""The library that all compiled modules share; `python -m compiler` generates it."""

SWITCH = "SDS_MONITOR_CORE"
"""Environment variable. Its value, `interpreted` or `compiled`, is the form of the
modules that a process must run."""

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SUFFIX = EXTENSION_SUFFIXES[0]

TAG = _SUFFIX.rpartition(".")[0]
"""Suffix of the name of the directory with the compiled modules: a dot, the Python
version and the platform."""

FILES = frozenset(name + _SUFFIX for name in (*MODULES, SHARED))
"""File names of all compiled modules and of the shared library."""


def directory(root: str = _ROOT) -> str:
    """Return the path of the directory with the compiled modules; it may not exist.

    The path contains a hash of the sources of all modules in the packages of `MODULES`,
    because the build copies constants and enumerations from all these sources.
    """
    digest = hashlib.sha256()
    for package in sorted({name.rpartition(".")[0] for name in MODULES}):
        place = os.path.join(root, *package.split("."))
        for name in sorted(os.listdir(place)):
            if name.endswith(".py"):
                with open(os.path.join(place, name), "rb") as source:
                    text = source.read()
                digest.update(f"{package}/{name} {len(text)}\n".encode() + text)
    return os.path.join(root, "sds_core", "core", digest.hexdigest()[:16] + TAG)


def find(root: str = _ROOT) -> str | None:
    """The directory with the compiled modules; None if it lacks one of `FILES`."""
    try:
        found = directory(root)
        return found if set(os.listdir(found)) >= FILES else None
    except OSError:
        return None


class _Finder(MetaPathFinder):
    def __init__(self, directory: str) -> None:
        self._directory = directory

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """See `MetaPathFinder`."""
        if fullname + _SUFFIX not in FILES:
            return None
        file = os.path.join(self._directory, fullname + _SUFFIX)
        loader = ExtensionFileLoader(fullname, file)
        return ModuleSpec(fullname, loader, origin=file)


def is_compiled() -> bool:
    """Whether this process loads compiled modules instead of sources."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def form() -> str:
    """The form of the modules in this process: `compiled` or `interpreted`."""
    return "compiled" if is_compiled() else "interpreted"


def describe() -> str:
    """The form of the modules in this process, as text for operators.

    If the form is `interpreted`, the text gives the reason: either `SWITCH` requires
    this form, or the compiled modules are unavailable. If they are unavailable, the
    text also names the page that explains what to do.
    """
    if is_compiled():
        return form()
    if os.environ.get(SWITCH) == form():
        return f"{form()} ({SWITCH})"
    return (
        f"{form()}, which takes more CPU time: they are not compiled for this Python "
        'and machine (docs/install.md, "Compiled rules")'
    )


def load() -> None:
    """If the compiled modules exist, make Python import them instead of the sources.

    If this machine cannot load the compiled modules, for example because they need a
    newer C library, `load` issues a warning and uses the sources.

    Raises:
        ImportError: `SWITCH` requires the compiled modules, but they do not exist or
            cannot be loaded.
    """
    wanted = os.environ.get(SWITCH)
    if wanted == "interpreted" or is_compiled():
        return
    found = find()
    if found is None:
        if wanted == "compiled":
            message = (
                f"{SWITCH} is 'compiled', but the sources are not compiled: run "
                "`make core`"
            )
            raise ImportError(message)
        return
    finder = _Finder(found)
    sys.meta_path.insert(0, finder)
    try:
        import_module(SHARED)
    except ImportError as error:
        sys.meta_path.remove(finder)
        if wanted == "compiled":
            raise
        message = (
            "the compiled rules cannot be loaded, so the rules run in Python's "
            f"interpreter: {error}"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
