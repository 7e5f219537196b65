"""The protocols that the monitor observes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sds_core.observer.dead_letter_view import DEAD_LETTERS
from sds_core.observer.kinds import AnyProtocol, Kinds
from sds_core.observer.mvds.kind import MVDS
from sds_core.observer.sds.kind import SDS
from sds_core.observer.tap_kind import TAPS

PROTOCOLS: tuple[AnyProtocol, ...] = (SDS, MVDS)
"""All protocols. A new protocol needs changes only in this module and in its own
packages."""


ROOT_KIND = next(protocol.kind for protocol in PROTOCOLS if protocol.kind.at_root)
"""The kind of view that commands use by default; see `Kind.at_root`."""


def by_name(protocols: Iterable[AnyProtocol]) -> Mapping[str, AnyProtocol]:
    """Return protocols by name. A name is a value of the record header ``protocol``."""
    return {protocol.name: protocol for protocol in protocols}


def kinds_of(protocols: Iterable[AnyProtocol]) -> Kinds:
    """Return a job's kinds of view: one per protocol, `TAPS`, and `DEAD_LETTERS`."""
    return Kinds([*(protocol.kind for protocol in protocols), TAPS, DEAD_LETTERS])
