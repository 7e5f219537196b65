"""Plans of channels, and variants of them."""

from __future__ import annotations

import pytest

from sds_core.message_channel.profile import Profile
from sds_core.planning.channel import ChannelPlan, changed
from sds_core.planning.experiment import scenario_of, times_of
from sds_core.reading import TableError, read
from sds_core.simulation.streams import Streams
from sds_core.simulation.traffic import Attendance

PLAN = ChannelPlan(participants=10, messages_per_day=1_000)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("default", Profile()),
        ("spec", Profile.spec()),
        ("js_sds", Profile.js_sds()),
        ("nim_sds", Profile.nim_sds()),
    ],
)
def test_plan_without_settings_has_those_of_its_profile(
    name: str, profile: Profile
) -> None:
    """Also as the scenario of a simulation has them."""
    plan = changed(PLAN, {"profile": name})
    assert plan.participant() == profile
    assert plan.share().profile() == profile


def test_factor_multiplies_the_present_value() -> None:
    """The plan's own, or that of the profile; whole numbers stay whole."""
    variant = changed(
        PLAN, {"participants": "2x", "causal_history": "0.5x", "loss": "0.1"}
    )
    assert variant == ChannelPlan(
        participants=20, messages_per_day=1_000, causal_history=10, loss=0.1
    )
    assert changed(variant, {"sync_interval_s": "3x"}).sync_interval_s == 90.0
    assert changed(PLAN, {"response_groups": "2x"}).response_groups == 2


def test_words_mean_none_and_flags() -> None:
    """`none` leaves a setting to the profile."""
    variant = changed(PLAN, {"sds_r": "off", "causal_history": "7"})
    assert not variant.participant().repair
    assert changed(variant, {"sds_r": "none", "causal_history": "none"}) == PLAN


def test_filter_rolls_over_at_the_same_fill() -> None:
    """Other capacities scale the ids at which it does, also those of nim-sds."""
    profile = changed(PLAN, {"filter_capacity": "1000"}).participant()
    assert (profile.bloom_rollover_ids, profile.bloom_kept_ids) == (1_000, 500)
    nim = changed(PLAN, {"filter_capacity": "1000", "profile": "nim_sds"})
    rolled = nim.participant().bloom_rolled
    assert rolled is not None
    assert rolled.capacity == 1_200
    assert nim.share().profile() == nim.participant()


def test_long_payload_has_segments() -> None:
    """Of 100 KiB at most, and parity by their number."""
    plan = changed(
        PLAN,
        {
            "payload_least_bytes": "1000000",
            "payload_most_bytes": "1000000",
            "segment_parity": "0.125",
        },
    )
    assert plan.segments() == (10, 2)
    assert PLAN.segments() == (1, 0)


@pytest.mark.parametrize(
    ("key", "text", "line"),
    [
        ("loss", "2", "loss is 2: allowed is a number from 0 to 1"),
        ("loss", "nan", "loss is nan: allowed is a number from 0 to 1"),
        ("loss", "much", "loss is 'much': allowed is a number from 0 to 1"),
        (
            "messages_per_day",
            "0",
            "messages_per_day is 0: allowed is a number from 1 to 500000",
        ),
        (
            "messages_per_day",
            "-3x",
            "messages_per_day is -3000: allowed is a number from 1 to 500000",
        ),
        (
            "messages_per_day",
            "inf",
            "messages_per_day is inf: allowed is a number from 1 to 500000",
        ),
        (
            "participants",
            "1.5",
            "participants is 1.5: allowed is a whole number from 2 to 2000",
        ),
        (
            "profile",
            "js",
            "profile is 'js': allowed is 'default' or 'js_sds' or 'nim_sds' or 'spec'",
        ),
        (
            "sds_r",
            "2x",
            "sds_r has the factor '2x', but its present value is not a number: give a "
            "value instead of a factor",
        ),
        (
            "t_min_s",
            "500",
            "the plan has t_min_s = 500 and t_max_s = 120, but t_min_s must be below "
            "t_max_s",
        ),
        (
            "payload_least_bytes",
            "500",
            "the plan has payload_least_bytes = 500 and payload_most_bytes = 200, "
            "but the minimum must not exceed the maximum",
        ),
        (
            "offline_share",
            "0.05",
            "the plan has offline_share = 0.05 and participants = 10, but "
            "offline_share must be 0 or select at least one participant "
            "(offline_share times participants, rounded)",
        ),
        (
            "filter_capacity",
            "1000000",
            "the plan has a filter_capacity and filter_rate that need filters of "
            "1,875,008 bytes, but at most 131,072 bytes are allowed: give a lower "
            "filter_capacity or a higher filter_rate",
        ),
    ],
)
def test_value_that_is_not_allowed_is_named(key: str, text: str, line: str) -> None:
    """With the allowed ones, in one line."""
    with pytest.raises(TableError) as caught:
        changed(PLAN, {key: text})
    assert str(caught.value) == line


def test_offline_share_selects_somebody() -> None:
    """As many participants are offline at times as the simulator selects."""
    for share, number in (("0.06", 1), ("0.25", 2), ("1", 10)):
        plan = changed(PLAN, {"offline_share": share})
        attendance = Attendance(scenario_of(plan, times_of(plan)), Streams(1))
        patterns = map(attendance.pattern, range(plan.participants))
        assert sum(one is not None for one in patterns) == number


def test_unknown_key_is_named_with_a_near_one() -> None:
    """And all that there are."""
    with pytest.raises(TableError, match=r"casual_history is not a setting \(did you"):
        changed(PLAN, {"casual_history": "2"})
    with pytest.raises(TableError, match=r"^'a\\n' is not a setting: use one of parti"):
        changed(PLAN, {"a\n": "2"})


@pytest.mark.parametrize("factor", ["infx", "nanx", "1e308x", "1e300x"])
def test_factor_without_a_finite_product_is_refused(factor: str) -> None:
    """Whole numbers have no infinity to round."""
    with pytest.raises(TableError, match=r"^participants is .*: allowed is "):
        changed(PLAN, {"participants": factor})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, 0.0])
def test_file_has_no_number_that_is_none(number: float) -> None:
    """TOML allows NaN and infinity."""
    with pytest.raises(TableError, match="messages_per_day is"):
        read({"participants": 2, "messages_per_day": number}, ChannelPlan)
