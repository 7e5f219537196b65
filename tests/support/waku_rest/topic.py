"""What a mirror wrote to Kafka."""

from __future__ import annotations

from sds_core.observer.record import RawRecord


def header(record: RawRecord, name: str) -> str:
    """A header of a record as text; empty if it has none."""
    return (dict(record.headers).get(name) or b"").decode()


def is_frame(record: RawRecord) -> bool:
    """Whether it is no heartbeat."""
    return not header(record, "kind")


def seqs(found: list[RawRecord]) -> list[int]:
    """Numbers of the frames among some records, least first."""
    return sorted(int(header(one, "seq")) for one in found if is_frame(one))
