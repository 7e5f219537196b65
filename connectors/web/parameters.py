"""Query parameters of pages and API, refused in one line if they make no sense.

A value that is not allowed is a `WrongParameter`; a view that is named but does not
exist, by name or by key, is a `NoChannel`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from connectors.web.naming import needs_key, short_key
from connectors.web.refusals import NoChannel, WrongParameter
from connectors.web.trends import DEFAULT_HOURS, HOURS
from sds_core.observer.incidents import IncidentKind, IncidentQuery
from sds_core.observer.snapshot import Snapshot, Views


def number(given: Mapping[str, str], name: str) -> int | None:
    """Return a whole number from 0 on; None if the parameter is missing."""
    text = given.get(name)
    if text is None:
        return None
    # Greatest number of digits of a 64-bit integer.
    if not re.fullmatch("[0-9]{1,18}", text):
        raise WrongParameter(name, "a whole number, 0 or more", text)
    return int(text)


def one_of(given: Mapping[str, str], name: str, allowed: Sequence[str]) -> str | None:
    """Return one of some words; None if the parameter is missing."""
    text = given.get(name)
    if text is not None and text not in allowed:
        raise WrongParameter(name, f"one of {', '.join(allowed)}", text)
    return text


def hours(given: Mapping[str, str]) -> int:
    """Return the number of hours that charts cover."""
    text = one_of(given, "hours", [str(choice) for choice in HOURS])
    return DEFAULT_HOURS if text is None else int(text)


def views_of(request: Request, snapshot: Snapshot) -> Views[Any]:
    """Return the views of the kind that a path names; if it names none, those at root.

    Raises:
        HTTPException: There is no such kind.
    """
    prefix = request.path_params.get("prefix")
    for views in snapshot.views.values():
        if views.kind.at_root if prefix is None else views.kind.prefix == prefix:
            return views
    raise HTTPException(404)


def view(given: Mapping[str, str], label: str, names: Iterable[str]) -> str | None:
    """Return the name of the requested view or group; None if no parameter names one.

    `label` is the parameter for a name; `key` may replace it if the name is long.
    """
    if label in given or "key" not in given:
        return given.get(label)
    key = given["key"]
    for name in names:
        if needs_key(name) and short_key(name) == key:
            return name
    raise NoChannel("key", key)


def chosen(given: Mapping[str, str], label: str, names: Collection[str]) -> str | None:
    """Return the name of the requested view, if one is given; see `view`."""
    name = view(given, label, names)
    return None if name is None else existing(given, label, names)


def existing(given: Mapping[str, str], label: str, names: Collection[str]) -> str:
    """Return the name of the requested view, which must be given; see `view`."""
    name = view(given, label, names) or ""
    if name not in names:
        raise NoChannel("id", name)
    return name


def incident_query(
    given: Mapping[str, str], label: str, names: Iterable[str]
) -> IncidentQuery:
    """Return the query that a view's name, `kind`, `since` and `standing` select."""
    kind = one_of(given, "kind", list(IncidentKind))
    return IncidentQuery(
        channel=view(given, label, names),
        kind=None if kind is None else IncidentKind(kind),
        since_ms=number(given, "since"),
        standing=one_of(given, "standing", ["true", "false"]) == "true",
    )
