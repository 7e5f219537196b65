"""Query parameters of pages and API, refused in one line if they make no sense."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from connectors.web.naming import is_long, short_key
from connectors.web.refusals import NoChannel, WrongParameter
from connectors.web.trends import DEFAULT_HOURS, HOURS
from sds_core.observer.incidents import IncidentKind, IncidentQuery
from sds_core.observer.snapshot import Snapshot


def number(given: Mapping[str, str], name: str) -> int | None:
    """A whole number from 0 on; None if it is not given.

    Raises:
        WrongParameter: It is something else.
    """
    text = given.get(name)
    if text is None:
        return None
    # As many digits as an integer of 64 bits has room for.
    if not re.fullmatch("[0-9]{1,18}", text):
        raise WrongParameter(name, "a whole number, 0 or more", text)
    return int(text)


def one_of(given: Mapping[str, str], name: str, allowed: Sequence[str]) -> str | None:
    """One of some words; None if it is not given.

    Raises:
        WrongParameter: It is something else.
    """
    text = given.get(name)
    if text is not None and text not in allowed:
        raise WrongParameter(name, f"one of {', '.join(allowed)}", text)
    return text


def hours(given: Mapping[str, str]) -> int:
    """How many hours of history are shown.

    Raises:
        WrongParameter: There are no intervals for so many.
    """
    text = one_of(given, "hours", [str(choice) for choice in HOURS])
    return DEFAULT_HOURS if text is None else int(text)


def channel(given: Mapping[str, str], name: str, snapshot: Snapshot) -> str | None:
    """The id of the channel that is asked for; None if none is.

    Args:
        given: The parameters.
        name: Of the one that has an id; `key` may stand in place of a long one.
        snapshot: Knows what a key stands for.

    Raises:
        NoChannel: It is not known what the key stands for.
    """
    if name in given or "key" not in given:
        return given.get(name)
    key = given["key"]
    for one in snapshot.channels:
        if is_long(one) and short_key(one) == key:
            return one
    raise NoChannel("key", key)


def incident_query(given: Mapping[str, str], snapshot: Snapshot) -> IncidentQuery:
    """`channel` or `key`, `kind`, `since` and `standing`; nothing else is set.

    Raises:
        NoChannel: See `channel`.
        WrongParameter: One of them makes no sense.
    """
    kind = one_of(given, "kind", list(IncidentKind))
    return IncidentQuery(
        channel=channel(given, "channel", snapshot),
        kind=None if kind is None else IncidentKind(kind),
        since_ms=number(given, "since"),
        standing=one_of(given, "standing", ["true", "false"]) == "true",
    )
