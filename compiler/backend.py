"""Build backend for pip: compiles the core, then builds packages with setuptools.

If `SDS_MONITOR_CORE` is `interpreted`, wheels contain no compiled core. If
`SDS_MONITOR_CORE` is `compiled`, a missing C compiler is an error. By default, wheels
contain the compiled core if a C compiler works. A wheel without the compiled core can
be installed on any platform.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from setuptools.command.bdist_wheel import bdist_wheel

from compiler import ROOT, group
from compiler.build import build
from compiler.c_compiler import CompilerMissing, HeadersMissing, find_compiler
from sds_core.compiled import SWITCH, find

__all__ = [
    "CompiledWheel",
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_Settings = Mapping[str, Any] | None


def get_requires_for_build_wheel(settings: _Settings = None) -> list[str]:
    """Return the packages that a build needs.

    If no installed C compiler works, the packages include a compiler.
    """
    needed: list[str] = build_meta.get_requires_for_build_wheel(settings)
    if not _is_wanted():
        return needed
    try:
        find_compiler()
    except HeadersMissing:
        return needed
    except CompilerMissing:
        return [*needed, *group("core"), *group("zig")]
    return [*needed, *group("core")]


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(
    directory: str, settings: _Settings = None, metadata: str | None = None
) -> str:
    """See PEP 517."""
    _compile()
    name: str = build_meta.build_wheel(directory, settings, metadata)
    return name


def build_editable(
    directory: str, settings: _Settings = None, metadata: str | None = None
) -> str:
    """See PEP 660."""
    _compile()
    name: str = build_meta.build_editable(directory, settings, metadata)
    return name


class CompiledWheel(bdist_wheel):
    """A wheel, which fits only this Python and platform if it has the compiled core."""

    def finalize_options(self) -> None:
        """See `Command`."""
        found = find(str(ROOT)) if _is_wanted() else None
        if found is not None:
            # If this method returns True, setuptools gives the wheel a platform tag.
            setattr(self.distribution, "has_ext_modules", lambda: True)  # noqa: B010
            files = self.distribution.package_data.setdefault("sds_core", [])
            files.append(f"core/{Path(found).name}/*")
        super().finalize_options()

    def run(self) -> None:
        """See `Command`."""
        # Delete the compiled core of an earlier build, because setuptools would add it
        # to the wheel.
        built = Path(self.get_finalized_command("build").build_lib)
        shutil.rmtree(built / "sds_core" / "core", ignore_errors=True)
        super().run()


def _is_wanted() -> bool:
    return os.environ.get(SWITCH) != "interpreted"


def _compile() -> None:
    if not _is_wanted():
        return
    try:
        build(ROOT)
    except CompilerMissing as error:
        if os.environ.get(SWITCH) == "compiled":
            raise
        sys.stderr.write(f"warning: the rules stay interpreted: {error}\n")
