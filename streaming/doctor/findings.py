"""Findings of checks, as sentences that end with the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from connectors.history.errors import DamagedHistory
from connectors.java import JavaMissing
from connectors.kafka.settings import (
    InvalidTopic,
    RecordsLost,
    TopicMissing,
    TopicReplaced,
)
from connectors.storage.disk import with_remedy
from sds_core.observer.blob import UnknownBlobVersion
from sds_core.text import one_line, printable
from streaming.checkpoint import CheckpointMismatch
from streaming.damage import DamagedCheckpoint
from streaming.directories import DirectoryInUse

_FORESEEN = (
    CheckpointMismatch,
    DamagedCheckpoint,
    DamagedHistory,
    DirectoryInUse,
    InvalidTopic,
    JavaMissing,
    # Kafka is unreachable or refuses the client, or a port, directory or certificate is
    # unusable.
    OSError,
    RecordsLost,
    TopicMissing,
    TopicReplaced,
    UnknownBlobVersion,
)
"""Errors whose text contains the remedy."""


class Checked(NamedTuple):
    """One check that was made: its name, and a line for each finding."""

    check: str
    findings: tuple[str, ...]


def checked(check: str, look: Callable[[], Iterable[str]]) -> Checked:
    """Make a check by calling `look`; an error that `look` raises is a finding."""
    findings: list[str] = []
    try:
        findings.extend(look())
    except _FORESEEN as error:
        findings.append(with_remedy(str(error)))
    except Exception as error:  # After any error, run other checks.
        findings.append(f"the check failed ({error!r}): report it as a defect")
    return Checked(check, tuple(printable(one_line(one)) for one in findings))
