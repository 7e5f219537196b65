"""Channels and taps without a label of their own, and forgotten ones, in a scrape."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client import generate_latest

from connectors.prometheus.collector import SnapshotCollector
from sds_core.observer.forgotten import Remainder
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from tests.support.exported import (
    counters_of,
    families_of,
    registry_of,
    snapshot,
    totals,
)
from tests.support.snapshots import snapshot_of, with_channels


def test_channels_without_a_label_are_exported_together() -> None:
    """`other` has the sums over all channels without a label of their own."""
    families = families_of(snapshot(["a", "b", "c"], labelled=1))
    messages = {s.labels["channel"]: s.value for s in families["sds_messages"].samples}
    assert messages == {"a": 4, "other": 5 + 6}


def test_merged_channels_have_no_verdict() -> None:
    """A verdict on several channels together would be meaningless."""
    families = families_of(snapshot(["a", "b", "c"], labelled=1))
    verdicts = families["sds_channel_verdict"].samples
    assert {sample.labels["channel"] for sample in verdicts} == {"a"}


def test_there_is_no_other_while_all_channels_have_a_label() -> None:
    """Without merged channels there is no series `other`."""
    text = generate_latest(registry_of(snapshot)).decode()
    assert 'channel="other"' not in text
    assert 'observer="other"' not in text


def test_channel_called_other_is_merged_into_other() -> None:
    """A scrape never holds two series with the same labels."""
    families = families_of(snapshot(["a", "other", "c"], labelled=2))
    messages = [
        (s.labels["channel"], s.value) for s in families["sds_messages"].samples
    ]
    assert messages == [("a", 4), ("other", 5 + 6)]


def test_label_without_figures_is_left_out() -> None:
    """A label in the ledger makes no series if its channel has no state."""
    exported = with_channels(snapshot(["a"]), labels=("gone", "a"))
    samples = families_of(exported)["sds_messages"].samples
    assert [sample.labels["channel"] for sample in samples] == ["a"]


@pytest.mark.parametrize("labelled", [0, 1, 2, 3])
def test_counters_add_up_over_channels_whatever_the_budget(labelled: int) -> None:
    """Each event is exported exactly once."""
    exported = snapshot(labelled=labelled)
    whole = {"all": CHANNEL_FIGURES.sum(exported.views["sds"].totals.values())}
    expected = counters_of(with_channels(exported, totals=whole, labels=("all",)))
    found: dict[tuple[object, ...], float] = {}
    for (name, *labels), value in counters_of(exported).items():
        merged = (
            ("channel", "all") if label[0] == "channel" else label for label in labels
        )
        key = (name, *merged)
        found[key] = found.get(key, 0) + value
    assert found == pytest.approx(expected)


def test_no_counter_falls_when_channels_come_and_grow() -> None:
    """A new channel does not change channels that have labels."""
    before = counters_of(snapshot(["a", "b", "c"], labelled=2))
    grown = snapshot(["a", "b", "c", "d", "e"], labelled=2)
    after = counters_of(grown)
    assert all(after[series] >= value for series, value in before.items())
    of_a = {key: value for key, value in before.items() if ("channel", "a") in key}
    assert of_a
    assert {key: after[key] for key in of_a} == of_a


def test_taps_without_a_label_are_exported_together() -> None:
    """`other` tells the stalest of the rest, and the sum of what they miss.

    Labels are in the order of the ledger, not in that of the figures.
    """
    taps = {f"tap-{n}": TapTotals((100 - n) * 1_000, n) for n in range(52)}
    taps["other"] = TapTotals(last_seen_ms=90_000, missing_records=1)
    labels = tuple(f"tap-{n}" for n in reversed(range(50)))
    exported = replace(snapshot(), taps=taps, tap_labels=("other", *labels))
    families = families_of(exported)
    missing = families["sds_tap_missing_records"].samples
    last_seen = families["sds_tap_last_seen_timestamp_seconds"].samples
    assert len(missing) == 51
    assert (missing[0].labels, missing[0].value) == ({"observer": "tap-49"}, 49)
    assert (missing[50].labels, missing[50].value) == ({"observer": "other"}, 102)
    assert last_seen[50].value == 49


def test_forgotten_tap_has_no_series() -> None:
    """It keeps its label and has a series again when it returns."""
    exported = replace(snapshot(), tap_labels=("gone", "tap"))
    samples = families_of(exported)["sds_tap_last_seen_timestamp_seconds"].samples
    assert [sample.labels["observer"] for sample in samples] == ["tap"]


def test_other_keeps_what_its_forgotten_channels_had_counted() -> None:
    """So its counters never fall; a forgotten channel with a label adds nothing.

    Its counts would look like an increase of the others.
    """
    remainder = Remainder(2, totals=totals(30), other=totals(10))
    snapshot = snapshot_of(
        primed=True,
        channels={"town": totals(1), "unlabelled": totals(5)},
        labels=("town", "forgotten"),
        remainder=remainder,
    )
    for channels, count in (
        (snapshot.views["sds"].totals, 15),
        ({"town": totals(1)}, 10),
    ):
        found = samples(with_channels(snapshot, totals=channels), "sds_messages_total")
        assert found == {"town": 1, "other": count}
    labelled = replace(remainder, other=None)
    only = with_channels(snapshot, totals={"town": totals(1)}, remainder=labelled)
    assert samples(only, "sds_messages_total") == {"town": 1}


def samples(snapshot: Snapshot, name: str) -> dict[str, float]:
    """Values of a metric of channels, by label."""
    families = SnapshotCollector(lambda: snapshot).collect()
    return {
        sample.labels["channel"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }
