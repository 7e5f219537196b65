"""Keys of the views: ``kind:name``. A new protocol is a new kind."""

from __future__ import annotations

import enum


class KeyKind(enum.StrEnum):
    """What a key's view is about."""

    CHANNEL = "sds"
    TAP = "tap"
    DEAD_LETTERS = "dead"
    CLOCK = "clock"
    """No view: a row that carries the admission time of a batch."""


def make_key(kind: KeyKind, name: str = "") -> str:
    """The key of a view."""
    return f"{kind.value}:{name}"


def split_key(key: str) -> tuple[KeyKind, str]:
    """Kind and name of a key that `make_key` made."""
    kind, _, name = key.partition(":")
    return KeyKind(kind), name
