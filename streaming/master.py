"""Checks the address of a Spark master before a command loads Spark."""

from __future__ import annotations

import os
import re
import socket

from sds_core.text import shown

LOCAL = "local[*]"
"""The master that uses all cores of this machine."""

_KNOWN = re.compile(
    r"local(\[(\*|[1-9]\d*)(,\d+)?\])?|spark://[^/\s,]+:\d+(,[^/\s,]+:\d+)*"
    r"|k8s://\S+|yarn"
)
_STANDALONE = "spark://"
_CONNECT_S = 5.0


def is_submitted() -> bool:
    """Whether ``spark-submit`` has started this program, and thus sets the master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_local(master: str) -> bool:
    """Whether Spark does all work on this machine, in a single JVM."""
    return master.startswith("local")


def check_master(master: str) -> None:
    """Check the form of a master's address.

    Raises:
        ValueError: Spark does not know this form.
    """
    if not _KNOWN.fullmatch(master):
        message = (
            f"{shown(master)} is not a Spark master: use a master such as {LOCAL}, "
            "spark://HOST:7077, k8s://https://HOST:6443 or yarn"
        )
        raise ValueError(message)


def find_unreachable(master: str) -> str | None:
    """Return why no process listens at the address of a master; None if one listens.

    Without this check, Spark would try to connect for a minute. Only standalone masters
    are checked; for any other master, the result is None. The address must be valid. If
    it names several masters, it suffices that one of them listens.
    """
    if not master.startswith(_STANDALONE):
        return None
    reason = None
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        try:
            place = host.strip("[]"), int(port)
            with socket.create_connection(place, _CONNECT_S):
                return None
        # A port above 65535 raises OverflowError.
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
    return reason
