"""Profiles of a scenario's participants: base profiles with changed options."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sds_core.message_channel.profile import Profile
from sds_core.reading import Table, TableError, read
from sds_core.wire import BloomParameters


class ProfileShare(Table, frozen=True, kw_only=True):
    """A profile, and the share of a channel's participants that have it.

    Attributes:
        base: the name of the base profile. So that simulations reproduce published
            figures, the base profiles differ from the profiles of class `Profile`: each
            has `possible_acks_capped`, as in versions up to 0.14, and "spec" has the
            repair options of "default". `overrides` can undo the differences.
        share: weight of this share relative to the other shares.
        overrides: values that replace fields of the base profile. `bloom` is a table
            with `capacity` and `error_rate`.
        library_syncs_every_s: time between two sync messages that a participant's
            application sends. If omitted, the application sends none. To send a sync
            message, the application sends an ordinary message through its library, and
            removes the content before the broadcast. So the library treats the sync
            message as an ordinary message: causal histories contain its id, and other
            participants repair it. Applications of nim-sds send such sync messages, but
            nim-sds itself sends none. To simulate nim-sds, also set `sync_interval_ms`
            in `overrides` to more than the simulation's length. All participants of a
            channel must have the same `library_syncs_every_s`.
    """

    base: Literal["default", "spec", "js_sds", "nim_sds"] = "spec"
    share: Annotated[float, Meta(gt=0, le=1_000_000)] = 1.0
    overrides: dict[str, Any] = msgspec.field(default_factory=dict)
    library_syncs_every_s: Annotated[float, Meta(gt=0, le=2_592_000)] | None = None

    def profile(self, path: str = "") -> Profile:
        """Return the profile.

        Raises:
            TableError: A key of `overrides` is unknown, or its value is not allowed.
        """
        path = f"{path}.overrides"
        overrides = msgspec.structs.asdict(read(self.overrides, _OVERRIDES, path))
        try:
            changes: dict[str, Any] = {
                name: BloomParameters(value.capacity, value.error_rate)
                if isinstance(value, _Bloom)
                else value
                for name, value in overrides.items()
                if value is not UNSET
            }
            return replace(_BASES[self.base], **changes)
        except ValueError as error:
            raise TableError(path, f"make no profile: {error}") from error


_DEFAULT = Profile(possible_acks_capped=True)
_BASES = {
    "default": _DEFAULT,
    "spec": replace(
        Profile.spec(),
        possible_acks_capped=True,
        requests_taken_per_message=_DEFAULT.requests_taken_per_message,
        after_request=_DEFAULT.after_request,
        repair_retention_ms=_DEFAULT.repair_retention_ms,
    ),
    "js_sds": replace(Profile.js_sds(), possible_acks_capped=True),
    "nim_sds": replace(Profile.nim_sds(), possible_acks_capped=True),
}


class _Bloom(Table, frozen=True, kw_only=True):
    capacity: int
    error_rate: float


_CHECKED: dict[Any, Any] = {
    BloomParameters: _Bloom,
    int: Annotated[int, Meta(ge=0)],
    float: Annotated[float, Meta(ge=0)],
}
# If a field of `Profile` can be None, the override can be None, too. TOML has no such
# value, but a mapping from another source can have it.
_CHECKED |= {plain | None: checked | None for plain, checked in _CHECKED.items()}
"""For types of `Profile`'s fields, the types that `overrides` must have.

`Profile` later checks further rules.
"""

_TYPES = get_type_hints(Profile)
_OVERRIDES = msgspec.defstruct(
    "Overrides",
    [
        (one.name, _CHECKED.get(_TYPES[one.name], _TYPES[one.name]) | UnsetType, UNSET)
        for one in fields(Profile)
    ],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""Struct with all fields of `Profile`. A field that `overrides` omits is UNSET."""
