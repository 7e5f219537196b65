"""Reads the newest result of an audit from the process `sds-monitor audit --every`."""

from __future__ import annotations

import logging

import httpx
import msgspec

from connectors.http_client import get
from connectors.polling import Poll
from connectors.untrusted_json import UNREADABLE
from connectors.web.side_apps import NEWEST
from sds_core.observer.snapshot import NO_AUDIT, MirrorAudit

_log = logging.getLogger("sds-monitor")

POLL_S = 15.0

_TIMEOUT_S = 5.0


class _Newest(msgspec.Struct):
    newest_missing_ms: dict[str, int]


class _Answer(msgspec.Struct):
    audit: _Newest | None


class AuditPoll(Poll[MirrorAudit]):
    """Polls `url` for the result of the newest audit; does nothing if `url` is None."""

    def __init__(self, url: str | None, poll_s: float = POLL_S) -> None:
        ask = None if url is None else _Asking(url)
        super().__init__(ask, NO_AUDIT, poll_s, "audit")


class _Asking:
    """Requests the newest result of the audit, and returns it.

    If the request fails, or no audit has ended yet, returns the previous result.
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/") + NEWEST
        self._last = NO_AUDIT
        self._is_answering = True

    def __call__(self) -> MirrorAudit:
        try:
            response = get(self._url, timeout=_TIMEOUT_S)
            response.raise_for_status()
            answer = msgspec.json.decode(response.content, type=_Answer)
        except (httpx.HTTPError, httpx.InvalidURL, *UNREADABLE) as error:
            if self._is_answering:
                _log.warning("the audit at %s does not answer: %s", self._url, error)
            self._is_answering = False
            return self._last
        self._is_answering = True
        if answer.audit is not None:
            self._last = MirrorAudit(answer.audit.newest_missing_ms)
        return self._last
