"""Checks that a monitor has what it needs, and prints findings."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import click

from connectors.java import find_java
from connectors.sockets.listener import listen
from streaming.cli.exit_codes import ExitCode
from streaming.cli.output import print_json, wall_ms
from streaming.cli.run_options import RunSettings
from streaming.cli.serving_options import WebAddress
from streaming.doctor.checkpoint import find_in_checkpoint
from streaming.doctor.findings import Checked, checked
from streaming.doctor.kafka import check_kafka
from streaming.doctor.machine import check_machine
from streaming.doctor.services import (
    find_expiring,
    find_in_alertmanager,
    find_in_prometheus,
)


def doctor(settings: RunSettings, alertmanager: str | None, as_json: bool) -> None:
    """Run all checks, and print the results; if one has a finding, exit with code 1."""
    results = []
    for one in _all_checks(settings, alertmanager):
        results.append(one)
        if not as_json:
            _print(one)
    if as_json:
        print_json({"checks": [one._asdict() for one in results]})
    if any(one.findings for one in results):
        sys.exit(ExitCode.FINDING)


def _all_checks(settings: RunSettings, alertmanager: str | None) -> Iterator[Checked]:
    job = settings.job
    yield checked("java", _java)
    yield from check_machine(job, settings.reading.session.is_cluster)
    yield checked("port", partial(_port, settings.address))
    yield checked("checkpoint", partial(find_in_checkpoint, job))
    security = job.source.kafka.security
    files = {
        "--kafka-ca-file": security.ca_file,
        "--kafka-certificate-file": security.certificate_file,
    }
    for option, path in settings.address.access.config().certificates.items():
        files[f"{option} of --web-config"] = str(path)
    if any(files.values()):
        yield checked("certificates", partial(find_expiring, files, wall_ms()))
    yield from check_kafka(job, wall_ms, writes_heartbeats=settings.heartbeat)
    if (prometheus := settings.prometheus) is not None:
        yield checked("prometheus", partial(find_in_prometheus, prometheus))
    if alertmanager is not None:
        yield checked("alertmanager", partial(find_in_alertmanager, alertmanager))


def _java() -> tuple[str, ...]:
    find_java()
    return ()


def _port(address: WebAddress) -> tuple[str, ...]:
    listen(address.host, address.port, limit=1).close()
    return ()


def _print(result: Checked) -> None:
    for finding in result.findings:
        click.echo(f"FINDING  {result.check}: {finding}")
    if not result.findings:
        click.echo(f"ok       {result.check}")
