"""Profiles of participants in a scenario: one by name, with what differs from it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sds_core.message_channel.profile import Profile
from sds_core.simulation.reading import ScenarioError, Table, read
from sds_core.wire import BloomParameters


class ProfileShare(Table, frozen=True, kw_only=True):
    """Which profile a share of a channel's participants has.

    Attributes:
        base: the profile's name.
        share: relative to the other shares.
        overrides: fields of `Profile` with other values; `bloom` is a table with
            capacity and error_rate.
    """

    base: Literal["spec", "js_sds", "nim_sds"] = "spec"
    share: Annotated[float, Meta(gt=0, le=1_000_000)] = 1.0
    overrides: dict[str, Any] = msgspec.field(default_factory=dict)

    def profile(self, path: str = "") -> Profile:
        """Return the profile.

        Args:
            path: where this table stands, for the error.

        Raises:
            ScenarioError: the overrides cannot be.
        """
        path = f"{path}.overrides"
        changes: dict[str, Any] = {
            name: BloomParameters(value.capacity, value.error_rate)
            if isinstance(value, _Bloom)
            else value
            for name, value in msgspec.structs.asdict(
                read(self.overrides, _OVERRIDES, path)
            ).items()
            if value is not UNSET
        }
        profile = replace(_BASES[self.base], **changes)
        if profile.t_min_ms >= profile.t_max_ms:
            problem = (
                f"makes t_min_ms = {profile.t_min_ms} and t_max_ms = "
                f"{profile.t_max_ms}: allowed is t_min_ms below t_max_ms"
            )
            raise ScenarioError(path, problem)
        return profile


_BASES = {
    "spec": Profile.spec(),
    "js_sds": Profile.js_sds(),
    "nim_sds": Profile.nim_sds(),
}


class _Bloom(Table, frozen=True, kw_only=True):
    capacity: Annotated[int, Meta(ge=1, le=10_000_000)]
    error_rate: Annotated[float, Meta(gt=0, lt=1)]


_LARGEST = 2**53
_POSITIVE = Annotated[int, Meta(ge=1, le=_LARGEST)]
_FROM_0 = Annotated[int, Meta(ge=0, le=_LARGEST)]
_MAY_BE_0 = {"causal_history_size", "max_retries", "requests_per_message"}


def _checked(name: str, hint: Any) -> Any:
    """Return the type to read a field of `Profile` as."""
    if name in _MAY_BE_0:
        return _FROM_0
    return {
        BloomParameters: _Bloom,
        int: _POSITIVE,
        # TOML has no null, but other sources of mappings do.
        int | None: _POSITIVE | None,
        float: Annotated[float, Meta(ge=0, le=1)],
    }.get(hint, hint)


_OVERRIDES = msgspec.defstruct(
    "Overrides",
    [
        (field.name, _checked(field.name, hint) | UnsetType, UNSET)
        for field in fields(Profile)
        for hint in [get_type_hints(Profile)[field.name]]
    ],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""Every field of `Profile`, checked; UNSET where nothing is said."""
