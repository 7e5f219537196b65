"""Query parameters of pages and API, refused in one line if they make no sense."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from connectors.web.trends import HOURS, SHOWN_HOURS
from sds_core.observer.incidents import IncidentKind, IncidentQuery


class WrongParameter(ValueError):
    """A query parameter makes no sense; the message says what would.

    Attributes:
        name: The parameter.
    """

    def __init__(self, name: str, expected: str) -> None:
        super().__init__(f"{name} must be {expected}")
        self.name = name


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
        raise WrongParameter(name, "a whole number, 0 or more")
    return int(text)


def one_of(given: Mapping[str, str], name: str, allowed: Sequence[str]) -> str | None:
    """One of some words; None if it is not given.

    Raises:
        WrongParameter: It is something else.
    """
    text = given.get(name)
    if text is not None and text not in allowed:
        raise WrongParameter(name, f"one of {', '.join(allowed)}")
    return text


def hours(given: Mapping[str, str]) -> int:
    """How many hours of history are shown.

    Raises:
        WrongParameter: There are no intervals for so many.
    """
    text = one_of(given, "hours", [str(choice) for choice in HOURS])
    return SHOWN_HOURS if text is None else int(text)


def incident_query(given: Mapping[str, str]) -> IncidentQuery:
    """`channel`, `kind`, `since` and `standing`; nothing else is set.

    Raises:
        WrongParameter: One of them makes no sense.
    """
    kind = one_of(given, "kind", list(IncidentKind))
    return IncidentQuery(
        channel=given.get("channel"),
        kind=None if kind is None else IncidentKind(kind),
        since_ms=number(given, "since"),
        standing=one_of(given, "standing", ["true", "false"]) == "true",
    )
