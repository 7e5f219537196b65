"""A real Prometheus for tests, and queries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.support.kafka import free_port
from tests.support.server_program import running

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus.

    Attributes:
        http: Asks it.
    """

    http: httpx.Client

    def query(self, expression: str) -> list[tuple[Labels, float]]:
        """Evaluate an expression now; return labels and value of each series.

        Raises:
            ValueError: It is none; says what is wrong with it.
        """
        result = self._get("query", query=expression)["result"]
        return [(one["metric"], float(one["value"][1])) for one in result]

    def query_range(
        self, expression: str, from_s: float, to_s: float, step_s: float
    ) -> list[tuple[Labels, list[float]]]:
        """Evaluate an expression repeatedly; return labels and values of each series.

        Args:
            expression: PromQL.
            from_s: Where to begin, Unix seconds.
            to_s: Where to end.
            step_s: Between two evaluations.

        Raises:
            ValueError: As `query`.
        """
        result = self._get(
            "query_range",
            query=expression,
            start=f"{from_s:.3f}",
            end=f"{to_s:.3f}",
            step=f"{step_s:g}",
        )["result"]
        return [
            (one["metric"], [float(value) for _, value in one["values"]])
            for one in result
        ]

    def is_scraping(self) -> bool:
        """Whether the latest scrape of each target succeeded."""
        targets = self._get("targets")["activeTargets"]
        return bool(targets) and all(one["health"] == "up" for one in targets)

    def failed_evaluations(self) -> int:
        """Return how many evaluations of rules failed since its start."""
        text = self.http.get("/metrics").text
        counts = re.findall(
            r"^prometheus_rule_evaluation_failures_total\{.*\} (\S+)$",
            text,
            re.MULTILINE,
        )
        assert counts
        return round(sum(map(float, counts)))

    def _get(self, path: str, **parameters: str) -> Any:
        answer = self.http.get(f"/api/v1/{path}", params=parameters).json()
        if answer["status"] != "success":
            raise ValueError(answer["error"])
        return answer["data"]


@contextmanager
def running_prometheus(
    directory: Path,
    configuration: Mapping[str, Any],
    rules: Mapping[str, Mapping[str, Any]],
    lookback_s: float,
) -> Iterator[Prometheus]:
    """Run a Prometheus on this machine until the block ends.

    Args:
        directory: For its files; made.
        configuration: As in `prometheus.yml`; its rule files are those given here.
        rules: Files of rules by name.
        lookback_s: For how long after its last sample a series is seen; Prometheus'
            own is 300.
    """
    directory.mkdir()
    for name, content in rules.items():
        (directory / f"{name}.rules.yml").write_text(yaml.safe_dump(dict(content)))
    configuration = dict(configuration) | {"rule_files": ["*.rules.yml"]}
    file = directory / "prometheus.yml"
    file.write_text(yaml.safe_dump(configuration))
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
        f"--query.lookback-delta={lookback_s:g}s",
    ]
    url = f"http://{address}"
    with (
        running(command, f"{url}/-/ready", directory / "log"),
        httpx.Client(base_url=url) as http,
    ):
        yield Prometheus(http)
