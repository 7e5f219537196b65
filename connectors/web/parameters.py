"""Query parameters of pages and API, refused in one line if they make no sense."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from connectors.web.naming import is_long, short_key
from connectors.web.refusals import NoChannel, WrongParameter
from connectors.web.trends import DEFAULT_HOURS, HOURS
from sds_core.observer.incidents import IncidentKind, IncidentQuery
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.snapshot import Snapshot


def number(given: Mapping[str, str], name: str) -> int | None:
    """Return a whole number from 0 on; None if the parameter is missing.

    Raises:
        WrongParameter: The value is not allowed.
    """
    text = given.get(name)
    if text is None:
        return None
    # Greatest number of digits of a 64-bit integer.
    if not re.fullmatch("[0-9]{1,18}", text):
        raise WrongParameter(name, "a whole number, 0 or more", text)
    return int(text)


def one_of(given: Mapping[str, str], name: str, allowed: Sequence[str]) -> str | None:
    """Return one of some words; None if the parameter is missing.

    Raises:
        WrongParameter: The value is not allowed.
    """
    text = given.get(name)
    if text is not None and text not in allowed:
        raise WrongParameter(name, f"one of {', '.join(allowed)}", text)
    return text


def hours(given: Mapping[str, str]) -> int:
    """Return the number of hours that charts cover.

    Raises:
        WrongParameter: This number of hours is not offered.
    """
    text = one_of(given, "hours", [str(choice) for choice in HOURS])
    return DEFAULT_HOURS if text is None else int(text)


def channel(given: Mapping[str, str], name: str, snapshot: Snapshot) -> str | None:
    """Return the id of the requested channel; None if no parameter names one.

    Args:
        given: The parameters.
        name: Name of the parameter for an id; `key` may replace a long id.
        snapshot: Has the channels, to find the one with a key.

    Raises:
        NoChannel: No channel has the key.
    """
    return view(given, name, snapshot.views[CHANNELS.prefix].totals)


def view(given: Mapping[str, str], name: str, names: Iterable[str]) -> str | None:
    """Return the name of the requested view or group; None if no parameter names one.

    Args:
        given: The parameters.
        name: Name of the parameter for a name; `key` may replace a long one.
        names: Names of all views of the kind.

    Raises:
        NoChannel: No name has the key.
    """
    if name in given or "key" not in given:
        return given.get(name)
    key = given["key"]
    for one in names:
        if is_long(one) and short_key(one) == key:
            return one
    raise NoChannel("key", key)


def incident_query(given: Mapping[str, str], snapshot: Snapshot) -> IncidentQuery:
    """Return the query that `channel` or `key`, `kind`, `since` and `standing` select.

    Raises:
        NoChannel: See `channel`.
        WrongParameter: A value is not allowed.
    """
    kind = one_of(given, "kind", list(IncidentKind))
    return IncidentQuery(
        channel=channel(given, "channel", snapshot),
        kind=None if kind is None else IncidentKind(kind),
        since_ms=number(given, "since"),
        standing=one_of(given, "standing", ["true", "false"]) == "true",
    )
