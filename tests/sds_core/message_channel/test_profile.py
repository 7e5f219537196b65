"""Options, and their values in the documents and both libraries."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict, fields, replace

import pytest

from sds_core.message_channel import (
    AfterRequest,
    Eviction,
    LamportRule,
    LogOrder,
    Profile,
    RepairHash,
)
from sds_core.wire import (
    MAX_ID_CHARACTERS,
    MAX_VALUE_BYTES,
    BloomParameters,
    Dialect,
)
from tests.support.participants import SPEC

DIFFERENCES: dict[str, tuple[object, object, object]] = {
    "dialect": (Dialect.SPEC, Dialect.SPEC, Dialect.NIM),
    "lamport_rule": (LamportRule.COUNT, LamportRule.FOLLOW_CLOCK, LamportRule.TICK),
    "lamport_unit_ms": (1, 1, 1_000),
    "log_order": (LogOrder.LAMPORT, LogOrder.LAMPORT, LogOrder.ARRIVAL),
    "log_limit": (10_000, 10_000, 1_000),
    "causal_history_size": (2, 200, 10),
    "bloom_rollover_ids": (10_000, None, 12_000),
    "bloom_kept_ids": (5_000, 5_000, 8_000),
    "bloom_rolled": (None, None, BloomParameters(12_000, 0.001)),
    "possible_acks_threshold": (2, 2, 1),
    "retry_unacknowledged_ms": (30_000, 30_000, 60_000),
    "retry_possibly_acknowledged_ms": (60_000, 30_000, 60_000),
    "max_retries": (10, 10, 5),
    "buffered_meets_dependencies": (False, True, False),
    "lost_after_ms": (600_000, None, None),
    "possible_acks_max_false_positive_rate": (None, 0.05, 0.05),
    "sync_least_share": (1.0, 0.0, None),
    "sync_put_off_limit": (3, None, None),
    "repair_hash": (RepairHash.SHA256, RepairHash.SHA256, RepairHash.FARM),
    "t_max_ms": (120_000, 120_000, 300_000),
    "response_groups": (None, None, 1),
    "repair_eviction": (Eviction.EARLIEST, Eviction.LATEST, Eviction.EARLIEST),
    "after_request": (AfterRequest.YIELD, AfterRequest.ONCE, AfterRequest.FORGET),
    "repair_sweep_ms": (5_000, 10_000, 5_000),
    "repair_retention_ms": (120_000, None, None),
    "repair_retained_limit": (1_000, 10_000, 1_000),
    "requests_taken_per_message": (None, 100, 100),
}
"""What SDS, js-waku and nim-sds do differently."""

SHARED: dict[str, object] = {
    "bloom": BloomParameters(10_000, 0.001),
    "sync_interval_ms": 30_000,
    "repair": True,
    "t_min_ms": 30_000,
    "requests_per_message": 3,
    "repair_buffer_limit": 1_000,
    "lamport_max_ahead_ms": None,
    "possible_acks_capped": False,
}
"""What they do alike, as far as the documents or the libraries say it."""

WIDE = {
    "outgoing_bytes_limit": (2**25, 2**29),
    "incoming_bytes_limit": (2**25, 2**29),
    "repair_retained_bytes_limit": (2**25, 2**29),
    "answers_per_sweep": (9, 1_000),
    "answer_bytes_per_sweep": (2**18, 2**29),
}
"""Limits of ours, and the wide ones in the profiles of libraries, which have none."""

OURS = {
    "sync_requests_factor",
    "outgoing_limit",
    "incoming_limit",
    "missing_limit",
    "history_limit",
    "id_limit",
    "hint_limit",
    "max_frame_bytes",
    "participant_forgotten_after_ms",
    "participants_limit",
}
"""Limits of which neither document nor library speaks."""


@pytest.mark.rule("sds-default-3")
@pytest.mark.parametrize("option", DIFFERENCES)
def test_profiles_differ_as_documents_and_libraries_do(option: str) -> None:
    """SDS and its guide, js-waku, nim-sds."""
    profiles = (Profile.spec(), Profile.js_sds(), Profile.nim_sds())
    assert tuple(getattr(one, option) for one in profiles) == DIFFERENCES[option]


@pytest.mark.parametrize("option", SHARED)
def test_profiles_agree_where_all_do(option: str) -> None:
    """The value is that of the documents."""
    for profile in (Profile.spec(), Profile.js_sds(), Profile.nim_sds()):
        assert getattr(profile, option) == SHARED[option]


def test_every_option_is_in_a_table_of_this_test() -> None:
    """Our own limits are the same in all profiles."""
    options = {one.name for one in fields(Profile)}
    assert options == {*DIFFERENCES, *SHARED, *OURS, *WIDE}
    for profile in (Profile.js_sds(), Profile.nim_sds()):
        assert all(getattr(profile, one) == getattr(SPEC, one) for one in OURS)


@pytest.mark.parametrize(("option", "values"), WIDE.items())
def test_limits_that_libraries_lack_are_wide_in_their_profiles(
    option: str, values: tuple[int, int]
) -> None:
    """Our own is close, against strangers."""
    ours, wide = values
    assert getattr(SPEC, option) == ours
    assert getattr(Profile.js_sds(), option) == wide
    assert getattr(Profile.nim_sds(), option) == wide


def test_defaults_differ_from_the_documents_only_in_what_loses_messages() -> None:
    """A library's choice must be requested."""
    assert replace(
        SPEC,
        causal_history_size=20,
        lamport_rule=LamportRule.FOLLOW_CLOCK,
        requests_taken_per_message=10,
        after_request=AfterRequest.ASK_AGAIN,
        repair_retention_ms=720_000,
    ) == (Profile())


def test_profile_cannot_be_changed() -> None:
    """Participants share it."""
    with pytest.raises(FrozenInstanceError):
        SPEC.repair = False
    assert replace(SPEC, repair=False).repair is False
    assert asdict(SPEC)["repair"] is True


def least_frame_bytes(profile: Profile) -> int:
    """The filter, three ids of ours, the requests and a quarter of it for a history."""
    id_bytes = 4 * profile.id_limit
    request = id_bytes + id_bytes + profile.hint_limit + 32
    requests = profile.requests_per_message * request
    filter_bytes = profile.bloom.length_bytes
    return (filter_bytes + 3 * id_bytes + requests + 1_024) * 4 // 3


AT_LEAST = {
    "lamport_unit_ms": 1,
    "log_limit": 1,
    "causal_history_size": 0,
    "bloom_kept_ids": 1,
    "retry_unacknowledged_ms": 1,
    "retry_possibly_acknowledged_ms": 1,
    "max_retries": 0,
    "outgoing_limit": 1,
    "incoming_limit": 1,
    "missing_limit": 1,
    "history_limit": SPEC.causal_history_size,
    "id_limit": 64,
    "hint_limit": 0,
    "max_frame_bytes": least_frame_bytes(SPEC),
    "sync_requests_factor": 0,
    "sync_interval_ms": 1,
    "t_min_ms": 0,
    "t_max_ms": SPEC.t_min_ms + 1,
    "requests_per_message": 1,
    "repair_buffer_limit": 1,
    "repair_sweep_ms": 1,
    "answers_per_sweep": 1,
    "answer_bytes_per_sweep": 1,
    "outgoing_bytes_limit": SPEC.max_frame_bytes,
    "incoming_bytes_limit": SPEC.max_frame_bytes,
    "repair_retained_bytes_limit": SPEC.max_frame_bytes,
    "repair_retained_limit": 1,
    "participant_forgotten_after_ms": 0,
    "participants_limit": 1,
}

OPTIONAL_AT_LEAST = {
    "lamport_max_ahead_ms": 0,
    "sync_least_share": 0,
    "sync_put_off_limit": 1,
    "possible_acks_max_false_positive_rate": 0,
    "bloom_rollover_ids": SPEC.bloom_kept_ids,
    "possible_acks_threshold": 1,
    "lost_after_ms": 1,
    "response_groups": 1,
    "requests_taken_per_message": SPEC.requests_per_message,
    "repair_retention_ms": 0,
}


@pytest.mark.parametrize(("option", "least"), AT_LEAST.items())
def test_option_out_of_its_range_is_refused(option: str, least: int) -> None:
    """The error has option, value and minimum."""
    message = f"^{option} is {least - 1}, but must be at least {least}$"
    with pytest.raises(ValueError, match=message):
        replace(SPEC, **{option: least - 1})
    assert getattr(replace(SPEC, **{option: least}), option) == least


@pytest.mark.parametrize(("option", "least"), OPTIONAL_AT_LEAST.items())
def test_optional_option_out_of_its_range_is_refused(option: str, least: int) -> None:
    """The error says that None is allowed."""
    message = f"^{option} is {least - 1}, but must be at least {least} or None$"
    with pytest.raises(ValueError, match=message):
        replace(SPEC, **{option: least - 1})
    assert getattr(replace(SPEC, **{option: least}), option) == least
    assert getattr(replace(SPEC, **{option: None}), option) is None


@pytest.mark.parametrize(
    ("option", "most"),
    [("id_limit", MAX_ID_CHARACTERS), ("max_frame_bytes", MAX_VALUE_BYTES)],
)
def test_option_above_what_can_be_decoded_is_refused(option: str, most: int) -> None:
    """Nobody would read the frames, and no process the stored state."""
    message = f"^{option} is {most + 1}, but must be at most {most}$"
    with pytest.raises(ValueError, match=message):
        replace(SPEC, **{option: most + 1})
    assert getattr(replace(SPEC, **{option: most}), option) == most


@pytest.mark.parametrize("option", ["bloom", "bloom_rolled"])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (BloomParameters(10, 1e-10), "k is 33, but must be at most 32 in the dialect"),
        (
            BloomParameters(2**23 // 15 + 1, 0.001),
            "m_bits is 8388615, but must be at most 8388608 in the dialect 'nim'",
        ),
    ],
)
def test_nim_filter_that_cannot_be_read_is_refused(
    option: str, parameters: BloomParameters, message: str
) -> None:
    """Its header would say so; the other dialect has no header."""
    wide = {"max_frame_bytes": MAX_VALUE_BYTES}
    with pytest.raises(ValueError, match=f"^{message}"):
        replace(Profile.nim_sds(), **{option: parameters}, **wide)
    assert replace(SPEC, bloom=parameters, **wide).bloom == parameters


def test_ranges_follow_the_options_they_depend_on() -> None:
    """We must accept our own histories, and a window must have a length."""
    with pytest.raises(
        ValueError, match="history_limit is 500, but must be at least 501"
    ):
        replace(SPEC, causal_history_size=501)
    with pytest.raises(
        ValueError, match="t_max_ms is 120000, but must be at least 120001"
    ):
        replace(SPEC, t_min_ms=120_000)
    with pytest.raises(
        ValueError, match="bloom_rollover_ids is 10000, but must be at lea"
    ):
        replace(SPEC, bloom_kept_ids=10_001)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("bloom", BloomParameters(20_000, 0.001)),
        ("id_limit", 257),
        ("hint_limit", 4_097),
        ("requests_per_message", 4),
    ],
)
def test_frame_limit_must_fit_the_content_of_a_frame(
    option: str, value: object
) -> None:
    """More content needs a higher limit."""
    least = least_frame_bytes(replace(SPEC, **{option: value}))
    assert least > AT_LEAST["max_frame_bytes"]
    with pytest.raises(ValueError, match=f"max_frame_bytes .* at least {least}$"):
        replace(SPEC, **{option: value}, max_frame_bytes=least - 1)
    assert replace(SPEC, **{option: value}, max_frame_bytes=least)


def test_frame_limit_must_fit_the_filter_after_a_roll_over() -> None:
    """In nim-sds it is larger than the first one."""
    nim = Profile.nim_sds()
    assert nim.bloom_rolled is not None
    least = least_frame_bytes(replace(nim, bloom=nim.bloom_rolled))
    assert least > least_frame_bytes(nim)
    with pytest.raises(ValueError, match=f"max_frame_bytes .* at least {least}$"):
        replace(nim, max_frame_bytes=least - 1)


def test_filter_size_can_change_only_in_nim() -> None:
    """Readers of the other dialect know one size."""
    with pytest.raises(ValueError, match="bloom_rolled is only for the dialect 'nim'"):
        replace(SPEC, bloom_rolled=SPEC.bloom)
    assert replace(SPEC, dialect=Dialect.NIM, bloom_rolled=SPEC.bloom)
