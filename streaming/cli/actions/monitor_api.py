"""Asks the API of a running monitor."""

from __future__ import annotations

from typing import Any, TypeVar

import click
import httpx
import msgspec

from connectors.http_client import get
from connectors.untrusted_json import UNREADABLE
from sds_core.text import printable
from streaming.cli.exit_codes import Unreachable
from streaming.cli.incident_options import DEFAULT_API

_Answer = TypeVar("_Answer")


class Refused(Unreachable):
    """The monitor answers with an error; `status` is the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Foreign(Unreachable):
    """The answer is not from a monitor."""

    def __init__(self, url: str, what: str, error: Exception) -> None:
        super().__init__(f"{url} gives no {what} ({error}): is it sds-monitor's?")


class _Refusal(msgspec.Struct):
    error: str


def ask_monitor(
    url: str,
    path: str,
    parameters: dict[str, Any],
    what: tuple[str, type[_Answer]],
    timeout_s: float,
) -> _Answer:
    """Return a monitor's answer to a GET request.

    `path` is relative to ``/api/v1/``; a parameter whose value is None is omitted.
    `what` has a word for the answer in error messages, and the type of the answer.
    `timeout_s` limits the time for each part of the answer, seconds.

    Raises:
        click.UsageError: The address is not a URL.
        Unreachable: The server does not answer, refuses, or is no monitor.
    """
    word, kind = what
    try:
        answer = get(
            f"{url.rstrip('/')}/api/v1/{path}", params=parameters, timeout=timeout_s
        )
        if answer.is_error or answer.is_redirect:
            raise Refused(_refusal(url, answer), answer.status_code)
        return msgspec.json.decode(answer.content, type=kind)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        message = (
            f"--api: {url!r} is not a valid URL ({error}): "
            f"give a URL such as {DEFAULT_API}"
        )
        raise click.UsageError(message) from error
    except UNREADABLE as error:
        raise Foreign(url, word, error) from error
    except httpx.RequestError as error:
        message = (
            f"no monitor answers at {url} ({error}): check --api, and check that the "
            "monitor runs"
        )
        raise Unreachable(message) from error


def _refusal(url: str, answer: httpx.Response) -> str:
    try:
        why = msgspec.json.decode(answer.content, type=_Refusal).error
    except UNREADABLE:
        return f"{url} answers {answer.status_code}: is it sds-monitor's?"
    return f"{url} answers {answer.status_code}: {printable(why)}"
