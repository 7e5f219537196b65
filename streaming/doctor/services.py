"""Checks of services around a job: Prometheus, Alertmanager, certificates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from cryptography.x509 import load_pem_x509_certificates

from connectors.http_client import get
from connectors.prometheus import firing

_TIMEOUT_S = 5.0

_SOON = timedelta(days=14)
"""A certificate that expires within this time is a finding."""


def find_in_prometheus(url: str) -> Iterator[str]:
    """Yield a finding if no Prometheus answers at a URL."""
    if problem := firing.ask(url).problem:
        yield f"{problem} at {url}: check --prometheus"


def find_in_alertmanager(url: str) -> Iterator[str]:
    """Yield a finding if no Alertmanager answers at a URL."""
    try:
        answer = get(f"{url.rstrip('/')}/api/v2/status", timeout=_TIMEOUT_S)
        if "versionInfo" in answer.raise_for_status().json():
            return
        problem = "what answers is not Alertmanager"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError) as error:
        problem = f"Alertmanager does not answer ({error})"
    yield f"{problem} at {url}: check --alertmanager"


def find_expiring(files: Mapping[str, str | None], now_ms: int) -> Iterator[str]:
    """Yield a finding for each file whose certificate has expired or soon expires.

    `files` has, for each option, the PEM file that it sets, or None.

    Raises:
        OSError: A file cannot be read.
    """
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    for option, file in files.items():
        if file is None:
            continue
        try:
            certificates = load_pem_x509_certificates(Path(file).read_bytes())
        except ValueError:
            yield f"{file} cannot be read as certificates: check {option}"
            continue
        # A list of authorities may contain old certificates, so the certificate that
        # expires last counts. A chain needs all its certificates, so the certificate
        # that expires first counts.
        pick = max if "ca" in re.split("[-_]", option) else min
        until = pick(one.not_valid_after_utc for one in certificates)
        if until - now < _SOON:
            verb = "expired" if until < now else "expires"
            yield (
                f"a certificate in {file} {verb} on {until:%Y-%m-%d}: renew it, and "
                f"give the new file as {option}"
            )
