"""Records that a mirror wrote to Kafka."""

from __future__ import annotations

from sds_core.observer.record import RawRecord


def header(record: RawRecord, name: str) -> str:
    """Return a header of a record as text; empty if absent."""
    return (dict(record.headers).get(name) or b"").decode()


def is_frame(record: RawRecord) -> bool:
    """Whether a record is a frame, not a heartbeat."""
    return not header(record, "kind")


def seqs(found: list[RawRecord]) -> list[int]:
    """Return the numbers of the frames among some records, in ascending order."""
    return sorted(int(header(one, "seq")) for one in found if is_frame(one))
