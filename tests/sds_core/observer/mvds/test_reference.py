"""The views give the figures of the plain reference, however the traffic is cut."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.observer.mvds.totals import GroupTotals
from tests.support.mvds.reference import figures
from tests.support.mvds.traffic import Monitor, Record, observed, sent
from tests.support.properties import CAREFUL

_PEERS = st.permutations(["a", "b", "c"]).map(lambda names: names[:2])
_NUMBERS = st.lists(st.integers(0, 2), max_size=2)


@st.composite
def _traffic(draw: st.DrawFn) -> list[Record]:
    """Payloads of three peers, with pauses around the deadline."""
    records, at_ms = [], 0
    for _ in range(draw(st.integers(1, 25))):
        # Never twice at the same time: the order would be that of the partitions.
        at_ms += draw(st.sampled_from([1, 700, 4_000, 5_000, 30_000, 60_000, 120_000]))
        sender, receiver = draw(_PEERS)
        records.append(
            sent(
                at_ms,
                sender,
                receiver,
                acks=draw(_NUMBERS),
                offers=draw(_NUMBERS),
                requests=draw(_NUMBERS),
                messages=draw(_NUMBERS),
            )
        )
    return records


def _counts(totals: GroupTotals) -> dict[str, int]:
    counts = {
        name: value
        for name, value in msgspec.structs.asdict(totals).items()
        if isinstance(value, int) and not name.endswith("_ms")
    }
    for name in ("delivery", "ack_latency"):
        durations = getattr(totals, name)
        counts |= {name: durations.count, f"{name}_ms": durations.sum_ms}
    return {name: number for name, number in counts.items() if number}


@CAREFUL
@given(_traffic(), st.sampled_from([0, 119_999, 130_000, 400_000]))
def test_views_count_what_the_reference_counts(
    records: list[Record], later_ms: int
) -> None:
    """Every count and every sum of durations is that of the definitions."""
    clock_ms = records[-1].at_ms + later_ms
    found = observed(records, clock_ms)
    expected = figures(records, clock_ms)
    known = {name for name in expected if name != "unknown"}
    assert found.keys() - {"unknown"} == known
    for name in known:
        counts = _counts(found[name])
        bytes_ = {key: counts.pop(key) for key in list(counts) if "bytes" in key}
        assert bytes_
        assert counts == {
            key: number for key, number in expected[name].items() if number
        }
    unknown = found["unknown"]
    assert unknown.payloads == expected["unknown"]["payloads"]
    assert unknown.payloads_empty == expected["unknown"]["payloads_empty"]


@pytest.mark.slow
@CAREFUL
@given(
    _traffic(),
    st.sets(st.integers(0, 24), max_size=6),
    st.integers(1, 5),
    st.integers(1, 4),
    st.booleans(),
)
def test_cut_of_the_input_changes_nothing(
    records: list[Record],
    cuts: set[int],
    chunk: int,
    partitions: int,
    restarts: bool,
) -> None:
    """Batches, chunks, partitions and restarts change no figure and no event."""
    end_ms = records[-1].at_ms + 300_000
    whole = Monitor()
    whole.batch(records, end_ms)
    parts = Monitor(partitions=partitions, restarts=restarts)
    begin = 0
    for cut in sorted(cut for cut in cuts if cut < len(records)):
        # A batch ends at a time until which everything was read.
        parts.batch(records[begin:cut], records[cut].at_ms - 1, chunk)
        begin = cut
    parts.batch(records[begin:], end_ms, chunk)
    assert parts.groups() == whole.groups()
    assert parts.incidents == whole.incidents
    assert parts.minutes == whole.minutes
