"""The shipped recording and the comparison with its truth."""

from __future__ import annotations

import copy

import pytest

from connectors.kafka.producer import TopicRecord, opening_of, partitions_of
from connectors.recording import load_recording, load_truth, restamped
from sds_core.simulation.comparison import compare
from sds_core.wire import UndecodableFrame, decode


@pytest.fixture(scope="module")
def recording() -> list[TopicRecord]:
    """All records."""
    return load_recording()


def test_recording_has_ten_minutes_of_decodable_frames(
    recording: list[TopicRecord],
) -> None:
    """Heartbeats are among the records."""
    assert recording[-1].timestamp_ms - recording[0].timestamp_ms > 600_000
    frames = [record for record in recording if record.value]
    assert len(frames) < len(recording)
    for record in frames:
        try:
            frame = decode(record.value)
        except UndecodableFrame as error:
            pytest.fail(f"{record.timestamp_ms}: {error}")
        assert record.key == frame.channel_id.encode()


def test_truth_has_every_outcome() -> None:
    """A figure that is always 0 would prove nothing."""
    totals = load_truth()["totals"]
    for group in ("gaps", "repair", "rebroadcasts", "acknowledged", "frames"):
        assert all(totals[group].values()), group


def test_restamping_moves_all_records_by_the_same_amount(
    recording: list[TopicRecord],
) -> None:
    """The last record has the requested time."""
    moved = list(restamped(recording, 5_000_000))
    assert moved[-1].timestamp_ms == 5_000_000
    shifts = {
        new.timestamp_ms - old.timestamp_ms
        for new, old in zip(moved, recording, strict=True)
    }
    assert len(shifts) == 1


def test_the_opening_reaches_every_partition(recording: list[TopicRecord]) -> None:
    """The opening is no longer than necessary."""
    opening = recording[: opening_of(recording)]
    assert {r.partition for r in opening} == set(range(partitions_of(recording)))
    assert {r.partition for r in opening[:-1]} != {r.partition for r in opening}


def as_report(truth: dict[str, object]) -> dict[str, object]:
    """A report that agrees with a truth in everything."""
    report = copy.deepcopy(truth)
    channels = report["channels"]
    assert isinstance(channels, dict)
    total = 0
    for figures in channels.values():
        latency_ms = sum(ms for _, ms in figures["ack_latencies"])
        figures["ack_latency_ms"] = {"definite": {"sum": latency_ms}}
        total += latency_ms
    totals = report["totals"]
    assert isinstance(totals, dict)
    totals["ack_latency_ms"] = {"definite": {"sum": total}}
    return report


def test_agreeing_report_has_no_difference() -> None:
    """Totals are compared first, then each channel."""
    truth = load_truth()
    found = list(compare(truth, as_report(truth)))
    assert all(one.same for one in found)
    assert found[0].channel == ""
    assert {one.channel for one in found} == {"", *truth["channels"]}


@pytest.mark.parametrize("path", [("gaps", "lost"), ("messages",), ("repair",)])
def test_wrong_or_missing_figure_is_a_difference(path: tuple[str, ...]) -> None:
    """The comparison names channel and figure."""
    truth = load_truth()
    report = as_report(truth)
    figures = report["channels"]["town-square"]  # type: ignore[index]
    for name in path[:-1]:
        figures = figures[name]
    if isinstance(figures[path[-1]], dict):
        del figures[path[-1]]
    else:
        figures[path[-1]] += 1
    wrong = [one for one in compare(truth, report) if not one.same]
    assert wrong
    assert {one.channel for one in wrong} == {"town-square"}
    assert all(one.figure.startswith(".".join(path)) for one in wrong)
