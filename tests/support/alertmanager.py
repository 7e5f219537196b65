"""A real Alertmanager for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.support.kafka import free_port
from tests.support.server_program import running


@contextmanager
def running_alertmanager(
    directory: Path, configuration: Mapping[str, Any], webhook_url: str
) -> Iterator[str]:
    """Run an Alertmanager until the block ends; yields `host:port`.

    Args:
        directory: For its files; made.
        configuration: As in `alertmanager.yml`: its tree of routes and its inhibition
            are kept. What it waits for is not waited for.
        webhook_url: Takes the place of whatever its receivers tell.
    """
    directory.mkdir()
    receivers = [
        {
            "name": receiver["name"],
            "webhook_configs": [{"url": webhook_url, "send_resolved": True}],
        }
        for receiver in configuration["receivers"]
    ]
    told = dict(configuration) | {
        "receivers": receivers,
        "route": _prompt(configuration["route"]),
    }
    file = directory / "alertmanager.yml"
    file.write_text(yaml.safe_dump(told))
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus-alertmanager",
        f"--config.file={file}",
        f"--storage.path={directory / 'data'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    with running(command, f"http://{address}/-/ready", directory / "log"):
        yield address


def _prompt(route: Mapping[str, Any]) -> dict[str, Any]:
    """Return a route, with those below it, that never waits and never repeats."""
    return dict(route) | {
        "group_wait": "100ms",
        "group_interval": "500ms",
        "repeat_interval": "24h",
        "routes": [_prompt(child) for child in route.get("routes", ())],
    }
