"""Writes files for Grafana and Prometheus; run it as ``python -m dashboards.build``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import Links
from dashboards.panels import dashboards
from dashboards.rules import rule_files

GENERATED = Path(__file__).with_name("generated")

_DEFAULT = Links()
_HEAD = "# Made by `python -m dashboards.build`; do not edit it by hand.\n"


def files(links: Links) -> dict[Path, str]:
    """Return the content of each generated file, by path in the output directory."""
    grafana = {
        Path("grafana", f"{uid}.json"): _json(dashboard)
        for uid, dashboard in dashboards(links).items()
    }
    prometheus = {
        Path("prometheus", f"{name}.yml"): _HEAD + _yaml(content)
        for name, content in rule_files(links).items()
    }
    return grafana | prometheus


def _json(value: object) -> str:
    return json.dumps(value, cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _yaml(value: dict[str, Any]) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=1_000)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as block literals, which are easier to read."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=GENERATED,
    help="Directory for the written files.  [default: dashboards/generated]",
)
@click.option(
    "--monitor-url",
    default=_DEFAULT.monitor_url,
    show_default=True,
    help="Links to the status page begin with this URL.",
)
@click.option(
    "--grafana-url",
    default=_DEFAULT.grafana_url,
    show_default=True,
    help="Links to Grafana begin with this URL.",
)
@click.option(
    "--runbook-url",
    default=_DEFAULT.runbook_url,
    show_default=True,
    help="Links to runbooks begin with this URL. If only the monitor serves the "
    "runbooks, use MONITOR_URL/runbooks.",
)
def main(out: Path, monitor_url: str, grafana_url: str, runbook_url: str) -> None:
    """Write dashboards, recording rules and alerts.

    Example: python -m dashboards.build --out /etc/sds --monitor-url https://sds.example
    """
    links = Links(*(url.rstrip("/") for url in (monitor_url, grafana_url, runbook_url)))
    for path, text in files(links).items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
