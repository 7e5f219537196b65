"""Objects of Kubernetes as Helm renders them, and their schemas for kubeconform."""

from __future__ import annotations

import json
import subprocess
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from deploy.make_chart import CHART, KUBERNETES
from tests.support.go_module import go_module

_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
_OPERATOR_SUM = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
_DEFINITIONS = "_definitions.json"

Object = dict[str, Any]


class Rendered(NamedTuple):
    """What ``helm template`` makes of the chart.

    Attributes:
        text: All objects as YAML.
        objects: The same, parsed.
    """

    text: str
    objects: list[Object]

    def get(self, kind: str, name: str) -> Object:
        """Return the only object of a kind and name."""
        (match,) = (
            item
            for item in self.objects
            if (item["kind"], item["metadata"]["name"]) == (kind, name)
        )
        return match

    def names(self, kind: str) -> list[str]:
        """Return the names of all objects of a kind."""
        return [o["metadata"]["name"] for o in self.objects if o["kind"] == kind]

    def pod(self, name: str) -> Object:
        """Return the pods' description of a StatefulSet."""
        described: Object = self.get("StatefulSet", name)["spec"]["template"]["spec"]
        return described

    def container(self, name: str) -> Object:
        """Return the only container of a StatefulSet's pods."""
        (container,) = self.pod(name)["containers"]
        assert isinstance(container, dict)
        return container


def helm(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Helm, for the chart as release ``sds-monitor``."""
    return subprocess.run(
        ["helm", *words, "--namespace", "sds", "--kube-version", KUBERNETES],
        capture_output=True,
        text=True,
    )


@lru_cache
def rendered(values: str | None = None) -> Rendered:
    """Return the chart with its default values; callers must not change it.

    Args:
        values: Name of a file of the chart's ``ci`` with other values.
    """
    files = ("--values", str(CHART / "ci" / values)) if values else ()
    done = helm("template", "sds-monitor", str(CHART), *files)
    assert done.returncode == 0, done.stderr
    return Rendered(done.stdout, list(yaml.safe_load_all(done.stdout)))


def write_schemas(directory: Path) -> str:
    """Write the schemas of all kinds; return their place, as kubeconform takes it.

    Those of Kubernetes are a part of a package on PyPI, those of the Prometheus
    operator of its repository.
    """
    version = f"v{KUBERNETES}.0-local-strict"
    # Its import takes two seconds of each worker.
    found = find_spec("kubernetes_validate")
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent / "kubernetes-json-schema"
    for path in (package / version).glob("*.json"):
        text = path.read_text("utf-8")
        schema = json.loads(text.replace(f'"/api/{_DEFINITIONS}', f'"{_DEFINITIONS}'))
        # It names another host, where kubeconform would look for the definitions.
        schema.pop("$id", None)
        (directory / path.name).write_text(json.dumps(schema), encoding="utf-8")
    (empty := directory / "empty").mkdir()
    operator = go_module(_OPERATOR, _OPERATOR_SUM, empty)
    for kinds in ("servicemonitors", "prometheusrules"):
        path = f"example/prometheus-operator-crd/monitoring.coreos.com_{kinds}.yaml"
        text = (operator / path).read_text("utf-8")
        kind = yaml.safe_load(text)["spec"]
        for served in kind["versions"]:
            schema = served["schema"]["openAPIV3Schema"]
            _make_strict(schema)
            name = f"{kind['names']['singular']}-monitoring-{served['name']}.json"
            (directory / name).write_text(json.dumps(schema), encoding="utf-8")
    return f"{directory}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"


def _make_strict(schema: Any) -> None:
    """Forbid fields that a schema does not name."""
    if not isinstance(schema, dict):
        return
    for inner in schema.values():
        _make_strict(inner)
    if "type" in schema and isinstance(schema.get("properties"), dict):
        schema.setdefault("additionalProperties", False)
