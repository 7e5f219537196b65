"""All targets: every decoder that something from outside reaches."""

from __future__ import annotations

from tests.support.fuzz.target import Target
from tests.support.fuzz.targets import (
    files,
    http,
    mvds,
    prolly,
    records,
    reliable_channel,
    rest,
    settings,
    states,
    wire,
)

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (
        wire,
        mvds,
        prolly,
        reliable_channel,
        records,
        rest,
        files,
        settings,
        states,
        http,
    )
    for target in module.TARGETS
}
"""By name."""
