"""Scenarios are read strictly, and errors say what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.message_channel.profile import AfterRequest, LamportRule, Profile
from sds_core.reading import TableError
from sds_core.simulation.profile_share import ProfileShare
from sds_core.simulation.scenario import Scenario, Span
from sds_core.wire import BloomParameters


def changed(mapping: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Set what stands at a path like `channels.0.name`."""
    *steps, last = path.split(".")
    place: Any = mapping
    for step in steps:
        if isinstance(place, list):
            place = place[int(step)]
        else:
            place = place.setdefault(step, {})
    if isinstance(place, list):
        place.append(value)
    else:
        place[last] = value
    return mapping


def test_scenario_has_defaults_for_all_that_is_left_out(
    mapping: dict[str, Any],
) -> None:
    """Required are name, duration, participants and a channel with traffic."""
    del mapping["network"], mapping["taps"]
    scenario = Scenario.from_mapping(mapping)
    assert scenario.network.loss == 0
    assert [tap.name for tap in scenario.taps] == ["tap"]
    assert scenario.taps[0].heartbeat_interval_s == 5
    (profile,) = (one.profile() for one in scenario.profiles)
    assert profile == replace(Profile.spec(), **AS_BEFORE)
    assert scenario.total_ms == scenario.duration_ms == 60_000


def test_group_of_several_channels_numbers_their_ids(mapping: dict[str, Any]) -> None:
    """A single channel has the name itself."""
    one = Scenario.from_mapping(mapping).channels[0]
    assert one.channel_ids() == ["ch"]
    three = Scenario.from_mapping(changed(mapping, "channels.0.count", 3)).channels[0]
    assert three.channel_ids() == ["ch-1", "ch-2", "ch-3"]


AS_BEFORE: dict[str, Any] = {
    "possible_acks_capped": True,
    "requests_taken_per_message": 10,
    "after_request": AfterRequest.ASK_AGAIN,
    "repair_retention_ms": 720_000,
}
"""Options of "spec" in scenarios, whose traffic is that of earlier versions."""


@pytest.mark.parametrize(
    ("base", "profile"),
    [
        ("spec", Profile.spec()),
        ("default", Profile()),
        ("js_sds", Profile.js_sds()),
        ("nim_sds", Profile.nim_sds()),
    ],
)
def test_base_is_the_profile_but_for_what_published_figures_need(
    base: str, profile: Profile
) -> None:
    """Overrides give each option its own value again."""
    changed = AS_BEFORE if base == "spec" else {"possible_acks_capped": True}
    share = ProfileShare(base=base)  # type: ignore[arg-type]
    assert share.profile() == replace(profile, **changed)
    overrides = {one: getattr(profile, one) for one in changed}
    share = ProfileShare(base=base, overrides=overrides)  # type: ignore[arg-type]
    assert share.profile() == profile


def test_profile_is_the_named_one_with_the_overrides(mapping: dict[str, Any]) -> None:
    """Every field of a profile can be set, by the values of its enums too."""
    mapping["profiles"] = [
        {
            "base": "js_sds",
            "overrides": {
                "causal_history_size": 3,
                "lamport_rule": "count",
                "bloom": {"capacity": 100, "error_rate": 0.01},
            },
        }
    ]
    profile = Scenario.from_mapping(mapping).profiles[0].profile()
    assert profile.causal_history_size == 3
    assert profile.lamport_rule is LamportRule.COUNT
    assert profile.bloom == BloomParameters(100, 0.01)
    assert profile.retry_possibly_acknowledged_ms == (
        Profile.js_sds().retry_possibly_acknowledged_ms
    )


@pytest.mark.parametrize(
    ("path", "value", "error_path", "said"),
    [
        ("title", 1, "", ["no key 'title'", "duration_s", "participants"]),
        ("duration_s", "60", "duration_s", ["'60'", "a number above 0"]),
        ("duration_s", float("inf"), "duration_s", ["inf"]),
        ("duration_s", True, "duration_s", ["True", "a number"]),
        ("settle_s", float("nan"), "settle_s", ["nan", "from 0"]),
        ("participants", 1, "participants", ["1", "from 2"]),
        ("participants", 4.5, "participants", ["4.5", "a whole number"]),
        ("name", "a b", "name", ["'a b'", "like ^"]),
        ("channels", [], "channels", ["at least 1"]),
        ("churn", 3, "churn", ["3", "a table with absences"]),
        (
            "channels.0.participants",
            5,
            "channels[0].participants",
            ["is 5", "the maximum is 4"],
        ),
        ("channels.0.colour", 5, "channels[0]", ["'colour'", "traffic"]),
        (
            "channels.0.traffic.per",
            "me",
            "channels[0].traffic.per",
            ["'me'", "'channel' or 'participant'"],
        ),
        (
            "channels.0.traffic.payload_most_bytes",
            3,
            "channels[0].traffic",
            ["payload_least_bytes = 20", "payload_most_bytes = 3"],
        ),
        ("network.loss", 1.5, "network.loss", ["1.5", "from 0 to 1"]),
        (
            "network.delay.low_ms",
            90,
            "network.delay",
            ["low_ms = 90", "not exceed high_ms"],
        ),
        ("network.delay.mean_ms", 90, "network.delay", ["'mean_ms'", "high_ms"]),
        (
            "network.delay.distribution",
            "normal",
            "network.delay.distribution",
            ["'normal'", "'uniform' or 'exponential' or 'lognormal'"],
        ),
        ("network.delay", {}, "network.delay", ["lacks the key 'distribution'"]),
        (
            "network.delay",
            {"distribution": "exponential", "mean_ms": 3, "least_ms": 3},
            "network.delay",
            ["least_ms = 3", "below mean_ms"],
        ),
        (
            "network.partitions",
            [{"from_s": 2, "until_s": 2, "participants": 1}],
            "network.partitions[0]",
            ["from_s = 2", "before until_s"],
        ),
        (
            "network.partitions",
            [{"from_s": 2, "until_s": 3, "participants": 4}],
            "network.partitions[0].participants",
            ["4", "the maximum is 3"],
        ),
        ("network.bursts", {"mean_good_s": 3}, "network.bursts", ["'mean_bad_s'"]),
        ("taps.0.name", 7, "taps[0].name", ["7", "a text"]),
        ("taps.1", {"name": "tap"}, "taps[1].name", ["'tap'", "give another name"]),
        (
            "channels.1",
            {"name": "ch", "traffic": {"mean_interval_s": 1}},
            "channels[1].name",
            ["'ch'", "give another name"],
        ),
        ("profiles", [{"base": "go"}], "profiles[0].base", ["'go'", "'nim_sds'"]),
        (
            "profiles",
            [{"overrides": {"t_mim_ms": 1}}],
            "profiles[0].overrides",
            ["'t_mim_ms'", "t_min_ms"],
        ),
        (
            "profiles",
            [{"overrides": {"t_min_ms": -1}}],
            "profiles[0].overrides.t_min_ms",
            ["-1", "from 0"],
        ),
        (
            "profiles",
            [{"overrides": {"t_min_ms": 120_000}}],
            "profiles[0].overrides",
            ["t_max_ms is 120000", "at least 120001"],
        ),
        (
            "profiles",
            [{"overrides": {"bloom": {"capacity": 0, "error_rate": 0.1}}}],
            "profiles[0].overrides",
            ["capacity is 0", "at least 1"],
        ),
        (
            "channels.0.profiles",
            [{"overrides": {"dialect": "go"}}],
            "channels[0].profiles[0].overrides.dialect",
            ["'go'", "'spec' or 'nim'"],
        ),
    ],
)
def test_invalid_value_is_refused_with_path_and_what_is_allowed(
    mapping: dict[str, Any], path: str, value: object, error_path: str, said: list[str]
) -> None:
    """The author can correct it without reading our code."""
    with pytest.raises(TableError) as caught:
        Scenario.from_mapping(changed(mapping, path, value))
    assert caught.value.path == error_path
    for text in said:
        assert text in caught.value.problem
    assert str(caught.value) == f"{error_path or 'the table'} {caught.value.problem}"
    assert "\n" not in str(caught.value)


def test_missing_key_is_named(mapping: dict[str, Any]) -> None:
    """For example, the duration has no default."""
    del mapping["duration_s"]
    with pytest.raises(TableError, match="lacks the key 'duration_s'"):
        Scenario.from_mapping(mapping)


def test_span_holds_from_its_start_to_before_its_end() -> None:
    """Spans that touch do not overlap."""
    span = Span(from_s=1, until_s=2)
    assert [span.holds(at_ms) for at_ms in (999, 1_000, 1_999, 2_000)] == [
        False,
        True,
        True,
        False,
    ]


_NAMES = st.sampled_from(["a", "b", "a-1", "a-2", "a-02", "a-9", "a-1-1", "a-1-2"])
_GROUPS = st.lists(
    st.builds(
        lambda name, count: {
            "name": name,
            "count": count,
            "traffic": {"mean_interval_s": 1},
        },
        _NAMES,
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=4,
)


@given(_GROUPS)
def test_ids_of_channels_are_unique(groups: list[dict[str, Any]]) -> None:
    """Whether they are given one by one or as a number of channels."""
    ids: list[str] = []
    refused: tuple[int, set[str]] | None = None
    for place, group in enumerate(groups):
        made = [f"{group['name']}-{n}" for n in range(1, group["count"] + 1)]
        made = [group["name"]] if group["count"] == 1 else made
        if again := {*made} & {*ids}:
            refused = place, again
            break
        ids += made
    first = {"name": "s", "description": "s", "duration_s": 9, "participants": 2}
    mapping = first | {"channels": groups}
    if refused is None:
        scenario = Scenario.from_mapping(mapping)
        assert [one for g in scenario.channels for one in g.channel_ids()] == ids
        return
    with pytest.raises(TableError, match="must be unique") as caught:
        Scenario.from_mapping(mapping)
    place, again = refused
    assert f"channels[{place}].name" in str(caught.value)
    assert any(f"name {one!r}:" in str(caught.value) for one in again)
