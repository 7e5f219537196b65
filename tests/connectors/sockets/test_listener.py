"""Descriptors that are left to the process."""

from __future__ import annotations

import os
import resource

from connectors.sockets.listener import are_scarce


def test_descriptors_are_scarce_once_only_the_reserve_is_left() -> None:
    """The system gives the lowest free number, so all below it are open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull, "rb") as file:
        assert not are_scarce(file.fileno(), 1)
    assert not are_scarce(soft - 33, 32)
    assert are_scarce(soft - 32, 32)
