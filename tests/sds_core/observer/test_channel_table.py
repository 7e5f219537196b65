"""The channel table, and which of its entries count."""

from __future__ import annotations

import pytest

from sds_core.observer.channel_table import (
    DEFAULT_SETTINGS,
    ChannelEntry,
    ChannelSettings,
    ChannelTable,
    Objectives,
)
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import JobFigures, Views
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import snapshot_of


def test_channel_without_an_entry_has_the_defaults() -> None:
    """Also if the table has entries for other channels."""
    assert ChannelTable().of("a") == DEFAULT_SETTINGS
    assert ChannelTable([ChannelEntry("b", "B")]).of("a") == DEFAULT_SETTINGS


def test_first_entry_with_a_setting_counts() -> None:
    """So a last ``*`` sets the operator's own defaults."""
    table = ChannelTable(
        [
            ChannelEntry("room-*", objectives=Objectives(delivery=0.9), label=False),
            ChannelEntry("*", "Any", Objectives(0.5, 0.6), True, 7),
        ]
    )
    assert table.of("room-1") == ChannelSettings("Any", 0.9, 0.6, False, 7)
    assert table.of("hall") == ChannelSettings("Any", 0.5, 0.6, True, 7)


def test_an_id_comes_before_every_pattern() -> None:
    """The position of its entry does not matter."""
    table = ChannelTable([ChannelEntry("*", "Any"), ChannelEntry("a", "A")])
    assert table.of("a").name == "A"


@pytest.mark.parametrize(
    ("pattern", "channel", "matches"),
    [
        ("a?", "ab", True),
        ("a?", "AB", False),
        ("a[0-9]", "a7", True),
        ("a[[]b]", "a[b]", True),
        ("room", "room-1", False),
        ("*", "two\nlines", True),
    ],
)
def test_patterns_match_whole_ids_and_mind_case(
    pattern: str, channel: str, matches: bool
) -> None:
    """On every platform."""
    table = ChannelTable([ChannelEntry(pattern, "found")])
    assert bool(table.of(channel).name) is matches


def test_muted_channels_are_left_aside_until_their_time() -> None:
    """The overall verdict then covers the other channels only."""
    snapshot = snapshot_of(
        primed=True,
        channels={
            "a": ChannelTotals(verdict=Verdict.FAILING),
            "b": ChannelTotals(verdict=Verdict.OK),
        },
        job=JobFigures(running=True, event_time_lag_seconds=0.0),
    )
    table = ChannelTable([ChannelEntry("a", mute_until_ms=1_000)])
    assert not snapshot.ok
    before, at = (snapshot.with_table(table, wall_ms) for wall_ms in (999, 1_000))
    assert (before.views["sds"].muted, before.ok) == ({"a"}, True)
    assert (at.views["sds"].muted, at.ok) == (set(), False)


def test_groups_are_muted_like_channels() -> None:
    """They have the names, labels and muting of the same table."""
    groups = {"g": GroupTotals(verdict=Verdict.BLIND)}
    snapshot = snapshot_of(
        primed=True,
        channels={"b": ChannelTotals(verdict=Verdict.OK)},
        others={"mvds": Views(SHARD_VIEWS, groups, ("g",))},
        job=JobFigures(running=True, event_time_lag_seconds=0.0),
    )
    assert not snapshot.ok
    table = ChannelTable([ChannelEntry("g", "Team G", mute_until_ms=1_000)])
    before, at = (snapshot.with_table(table, wall_ms) for wall_ms in (999, 1_000))
    assert (before.views["mvds"].muted, before.ok) == ({"g"}, True)
    assert (at.views["mvds"].muted, at.ok) == (set(), False)
