"""Exceptions for requests that cannot be answered, with their HTTP status.

Refusal
├── UnknownParameter     400
├── WrongParameter       400
├── NoChannel            404
├── NoTrace              404
├── TracesBusy           429
├── TraceFailed          503
├── NotReady             503
├── FiguresUnread        503
├── NoRecord             503
├── HistoryBusy          503
└── HistoryUnreadable    500
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from connectors.web import words

_NO_VALUES: Mapping[str, str] = MappingProxyType({})


class Refusal(Exception):
    """A request cannot be answered; the message has the reason in one line.

    Attributes:
        message: Default message of the class; empty if each refusal has its own.
        values: Values that the JSON answer has in addition to the message.
    """

    status: ClassVar[int]
    message: ClassVar[str] = ""
    headers: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init__(self, why: str = "", values: Mapping[str, str] = _NO_VALUES) -> None:
        super().__init__(why or self.message)
        self.values = values


class UnknownParameter(Refusal):
    """No query parameter has this name; the message lists the allowed names."""

    status = 400

    def __init__(self, name: str, known: Sequence[str]) -> None:
        some = (
            f"the allowed parameters are {', '.join(known)}"
            if known
            else "this address has no parameters"
        )
        super().__init__(f"no parameter has the name {words.short(name)}: {some}")


class WrongParameter(Refusal):
    """A query parameter has a wrong value; the message states which are allowed."""

    status = 400

    def __init__(self, name: str, expected: str, given: str) -> None:
        super().__init__(f"{name} must be {expected}, not {words.short(given)}")


class NoChannel(Refusal):
    """No channel or group has the requested id or key."""

    status = 404

    def __init__(self, name: str, given: str) -> None:
        super().__init__(f"no channel has this {name}", {name: given})


class NoTrace(Refusal):
    """No searched record contains the message's id, or no trace is possible."""

    status = 404
    message = "this monitor cannot make traces: use the command sds-monitor trace"


class TracesBusy(Refusal):
    """This client already waits for a trace, or too many other clients wait for one."""

    status = 429
    message = "the monitor is making another trace: try again in a few seconds"
    headers = MappingProxyType({"Retry-After": "10"})


class TraceFailed(Refusal):
    """The trace took too long, or Kafka does not answer."""

    status = 503


class NotReady(Refusal):
    """The figures are incomplete or not fresh."""

    status = 503


class FiguresUnread(Refusal):
    """The monitor is starting and has not read the totals of its checkpoint yet."""

    status = 503
    message = (
        "the monitor is starting, and has not read its figures yet: try again in a "
        "few seconds"
    )


class NoRecord(Refusal):
    """The monitor has not read any record yet, so the event time is unknown."""

    status = 503
    message = "no record has been read yet"


class HistoryBusy(Refusal):
    """Too many other requests are reading the history."""

    status = 503
    message = "too many requests use the history: try again in a few seconds"


class HistoryUnreadable(Refusal):
    """The history does not exist, or a file of the history is damaged."""

    status = 500
