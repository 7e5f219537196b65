"""Describes a planned channel: its participants, traffic, network, and settings.

A plan names a profile of a participant. If a plan omits a setting, the profile's value
applies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from sds_core.message_channel.profile import Profile
from sds_core.reading import Table, TableError, contradiction, read
from sds_core.reliable_channel.segmentation import SegmentationOptions
from sds_core.simulation.profile_share import ProfileShare
from sds_core.simulation.scenario import (
    LEAST_ABOVE_MOST,
    LONGEST_S,
    PositiveSeconds,
    Seconds,
    Share,
    selected,
)
from sds_core.text import did_you_mean, shown
from sds_core.wire import BloomParameters

DAY_S: Final = 86_400.0

MAX_MESSAGES_PER_DAY: Final = 500_000
"""Maximum number of messages per day of all participants of a channel together.

At a higher rate, a simulation with losses takes too long, because each participant
waits for many missing messages at the same time.
"""

MAX_FILTER_BYTES: Final = 131_072
"""Maximum length of a bloom filter, bytes.

A longer filter leaves no room for content in a message of 150 KiB (64/WAKU2-NETWORK,
"Message Size").
"""

_SEGMENTATION = SegmentationOptions()
MAX_SEGMENT_BYTES: Final = _SEGMENTATION.segment_bytes
"""Maximum length of a segment of a payload, bytes."""

_Interval = Annotated[float, Meta(ge=1, le=LONGEST_S)]
_Millis = Annotated[float, Meta(ge=1, le=600_000)]


class ChannelPlan(Table, frozen=True, kw_only=True):
    """A channel to plan. docs/planning.md ("Keys of a plan") defines the fields.

    Keys that end in `_s` are seconds, and keys that end in `_ms` are milliseconds.
    Shares are in [0, 1]. If a field is None, the profile's value applies, except for
    two fields. If `fetch_after_s` is None, participants never fetch missed messages. If
    `filter_ids` is None, `closed_forms.steady_ids` assumes filters of an old channel.
    """

    participants: Annotated[int, Meta(ge=2, le=2_000)]
    messages_per_day: Annotated[float, Meta(ge=1, le=MAX_MESSAGES_PER_DAY)]
    payload_least_bytes: Annotated[int, Meta(ge=1, le=10_000_000)] = 20
    payload_most_bytes: Annotated[int, Meta(ge=1, le=10_000_000)] = 200
    loss: Share = 0.0
    delay_ms: _Millis = 100.0
    delay_sigma: Annotated[float, Meta(ge=0, le=3)] = 0.4
    offline_share: Share = 0.0
    mean_present_s: PositiveSeconds = 3_600.0
    mean_away_s: PositiveSeconds = 3_600.0
    fetch_after_s: Seconds | None = None
    profile: Literal["default", "spec", "js_sds", "nim_sds"] = "default"
    causal_history: Annotated[int, Meta(ge=0, le=1_000)] | None = None
    filter_capacity: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    filter_rate: Annotated[float, Meta(gt=0, lt=1)] | None = None
    filter_ids: Annotated[int, Meta(ge=0, le=100_000_000)] | None = None
    t_min_s: Seconds | None = None
    t_max_s: PositiveSeconds | None = None
    response_groups: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    sync_interval_s: _Interval | None = None
    segment_parity: Share = 0.0
    retransmission_interval_s: _Interval | None = None
    sds_r: bool | None = None
    epoch_messages: Annotated[int, Meta(ge=1, le=1_000_000)] = 100

    def __post_init__(self) -> None:
        """Raise ValueError if two values contradict each other."""
        least, most = self.payload_least_bytes, self.payload_most_bytes
        if least > most:
            raise contradiction(
                LEAST_ABOVE_MOST, payload_least_bytes=least, payload_most_bytes=most
            )
        share, participants = self.offline_share, self.participants
        if share and not selected(share, participants):
            rule = (
                "offline_share must be 0 or select at least one participant "
                "(offline_share times participants, rounded)"
            )
            raise contradiction(rule, offline_share=share, participants=participants)
        t_min_s, t_max_s = self.setting("t_min_s"), self.setting("t_max_s")
        if t_min_s >= t_max_s:
            rule = "t_min_s must be below t_max_s"
            raise contradiction(rule, t_min_s=t_min_s, t_max_s=t_max_s)
        if (filter_bytes := self.bloom().length_bytes) > MAX_FILTER_BYTES:
            message = (
                "has a filter_capacity and filter_rate that need filters of "
                f"{filter_bytes:,} bytes, but at most {MAX_FILTER_BYTES:,} bytes are "
                "allowed: give a lower filter_capacity or a higher filter_rate"
            )
            raise ValueError(message)
        self.participant()

    def setting(self, name: str) -> Any:
        """Return a field's value, or the profile's value if the field is None."""
        value = getattr(self, name)
        if value is not None:
            return value
        profile = _PROFILES[self.profile]
        return {
            "causal_history": profile.causal_history_size,
            "filter_capacity": profile.bloom.capacity,
            "filter_rate": profile.bloom.error_rate,
            "t_min_s": profile.t_min_ms / 1_000,
            "t_max_s": profile.t_max_ms / 1_000,
            # If the profile has no number, participants compute it from the number of
            # known participants. The plan assumes that they know all participants.
            "response_groups": profile.response_groups
            or max(1, self.participants // 128),
            "sync_interval_s": profile.sync_interval_ms / 1_000,
            "retransmission_interval_s": profile.retry_unacknowledged_ms / 1_000,
            "sds_r": profile.repair,
        }.get(name)

    def settings(self) -> dict[str, Any]:
        """Return the values of all fields by name; see `setting`."""
        return {name: self.setting(name) for name in self.__struct_fields__}

    def bloom(self) -> BloomParameters:
        """Return the capacity and the false-positive rate of the channel's filters."""
        return BloomParameters(
            self.setting("filter_capacity"), self.setting("filter_rate")
        )

    def participant(self) -> Profile:
        """Return the options that all participants have.

        The numbers of ids before and after a roll-over are proportional to the filter's
        capacity. Therefore, filters roll over at the same fill level as in the profile.

        Raises:
            ValueError: An option is out of its range.
        """
        base, bloom = _PROFILES[self.profile], self.bloom()
        size = bloom.capacity / base.bloom.capacity
        interval_ms = round(self.setting("retransmission_interval_s") * 1_000)
        retries = interval_ms / base.retry_unacknowledged_ms
        rollover, rolled = base.bloom_rollover_ids, base.bloom_rolled
        kept = max(1, round(base.bloom_kept_ids * size))
        history = self.setting("causal_history")
        return replace(
            base,
            causal_history_size=history,
            history_limit=max(base.history_limit, history),
            bloom=bloom,
            bloom_kept_ids=kept,
            bloom_rollover_ids=rollover and max(kept, round(rollover * size)),
            bloom_rolled=rolled
            and BloomParameters(
                max(1, round(rolled.capacity * size)), bloom.error_rate
            ),
            t_min_ms=round(self.setting("t_min_s") * 1_000),
            t_max_ms=round(self.setting("t_max_s") * 1_000),
            response_groups=self.response_groups or base.response_groups,
            sync_interval_ms=max(1, round(self.setting("sync_interval_s") * 1_000)),
            retry_unacknowledged_ms=max(1, interval_ms),
            retry_possibly_acknowledged_ms=max(
                1, round(base.retry_possibly_acknowledged_ms * retries)
            ),
            repair=self.setting("sds_r"),
        )

    def share(self) -> ProfileShare:
        """Return the result of `participant` in the form that a scenario uses."""
        base, options = ProfileShare(base="default").profile(), self.participant()
        overrides = {
            field.name: _plain(getattr(options, field.name))
            for field in fields(Profile)
            if getattr(options, field.name) != getattr(base, field.name)
        }
        return ProfileShare(base="default", overrides=overrides)

    def segments(self) -> tuple[int, int]:
        """Return the numbers of data and parity segments of a mean-length payload."""
        options = replace(_SEGMENTATION, parity_rate=self.segment_parity)
        data = options.data_count(self._mean_bytes)
        return data, options.parity_count(data)

    def segment_bytes(self) -> int:
        """Return the length of the segments of a mean-length payload, bytes."""
        data, _ = self.segments()
        return -(-self._mean_bytes // data)

    @property
    def _mean_bytes(self) -> int:
        return (self.payload_least_bytes + self.payload_most_bytes) // 2


_PROFILES: Final = {
    "default": Profile(),
    "spec": Profile.spec(),
    "js_sds": Profile.js_sds(),
    "nim_sds": Profile.nim_sds(),
}


def changed(plan: ChannelPlan, changes: Mapping[str, str]) -> ChannelPlan:
    """Return a variant of a plan.

    `changes` maps keys of the plan to new values as text. A factor such as `2x`
    multiplies the present value. `none` sets the key to None; see `ChannelPlan`.

    Raises:
        TableError: A key is unknown, or a value is not allowed.
    """
    values = msgspec.structs.asdict(plan)
    for key, text in changes.items():
        if key not in values:
            allowed = ", ".join(values)
            close = did_you_mean(key, values)
            problem = f"is not a setting{close}: use one of {allowed}"
            raise TableError(key if key.isidentifier() else shown(key), problem)
        values[key] = _value(plan, key, text.strip())
    try:
        return read(values, ChannelPlan)
    except TableError as error:
        raise TableError(error.path or "the plan", error.problem) from error


def _value(plan: ChannelPlan, key: str, text: str) -> object:
    words: dict[str, object] = {
        "none": None, "true": True, "on": True, "false": False, "off": False
    }  # fmt: skip
    if text.lower() in words:
        return words[text.lower()]
    factor = text[:-1] if text[-1:] == "x" else None
    try:
        number = float(text if factor is None else factor)
    except ValueError:
        return text
    if factor is not None:
        present = plan.setting(key)
        if isinstance(present, bool) or not isinstance(present, int | float):
            problem = (
                f"has the factor {shown(text)}, but its present value is not a number: "
                "give a value instead of a factor"
            )
            raise TableError(key, problem)
        number *= present
        if isinstance(present, int) and math.isfinite(number):
            # Some settings, such as the number of participants, must be whole numbers.
            number = round(number)
    return int(number) if math.isfinite(number) and number == int(number) else number


def _plain(value: object) -> object:
    if isinstance(value, BloomParameters):
        return {"capacity": value.capacity, "error_rate": value.error_rate}
    return str(value) if isinstance(value, str) else value
