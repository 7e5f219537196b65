"""The manifest for Kubernetes: its form, and that its parts fit one another."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.support.deployment import parameters, version

KUBERNETES = "1.34"
"""Version of its schemas."""

DIRECTORY = Path(__file__).parents[1] / "deploy" / "kubernetes"
OBJECTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((DIRECTORY / "sds-monitor.yaml").read_text("utf-8"))
)
BY_KIND = {one["kind"]: one for one in OBJECTS}
CONFIGURATION: dict[str, str] = BY_KIND["ConfigMap"]["data"]
POD: dict[str, Any] = BY_KIND["StatefulSet"]["spec"]["template"]["spec"]
SPARK = dict(
    line.split(maxsplit=1)
    for line in CONFIGURATION["spark-defaults.conf"].splitlines()
    if not line.startswith("#")
)


@pytest.fixture
def container() -> dict[str, Any]:
    """The driver's container."""
    (found,) = POD["containers"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("described", OBJECTS, ids=lambda one: one["kind"])
def test_manifest_follows_the_schemas_of_kubernetes(described: dict[str, Any]) -> None:
    """All fields are known, and of the right type."""
    kubernetes_validate.validate(described, KUBERNETES, strict=True)


def test_page_names_the_version() -> None:
    """Of the schemas above."""
    page = (DIRECTORY.parents[1] / "docs/scaling.md").read_text("utf-8")
    assert f"the schemas of Kubernetes {KUBERNETES}," in page


def test_wrong_manifest_is_noticed() -> None:
    """A field that does not exist, and a number as text."""
    for wrong in ({"replica": 1}, {"minReadySeconds": "2"}):
        described = {**BY_KIND["StatefulSet"]}
        described["spec"] = described["spec"] | wrong
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(described, KUBERNETES, strict=True)


def test_command_and_settings_are_known(
    container: dict[str, Any], tmp_path: Path
) -> None:
    """As the pod's container gets them."""
    program, *arguments = container["args"]
    assert program == "sds-monitor"
    (mount,) = (m for m in container["volumeMounts"] if m["name"] == "configuration")
    for name, text in CONFIGURATION.items():
        (tmp_path / name).write_text(text)
    here = [one.replace(mount["mountPath"], str(tmp_path)) for one in arguments]
    job = parameters(here)
    assert job["master"].startswith("k8s://https://")
    (conf,) = container["env"]
    assert conf == {"name": "SPARK_CONF_DIR", "value": mount["mountPath"]}


def test_driver_and_executors_share_the_checkpoint(container: dict[str, Any]) -> None:
    """The same claim, at the same path, with the checkpoint in it."""
    prefix = "spark.kubernetes.executor.volumes.persistentVolumeClaim.checkpoint."
    (volume,) = (one for one in POD["volumes"] if one["name"] == "checkpoint")
    (mount,) = (m for m in container["volumeMounts"] if m["name"] == "checkpoint")
    claim = BY_KIND["PersistentVolumeClaim"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    name = claim["metadata"]["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == name
    assert SPARK[f"{prefix}options.claimName"] == name
    assert SPARK[f"{prefix}mount.path"] == mount["mountPath"]
    assert SPARK[f"{prefix}mount.readOnly"] == "false"
    settings = tomllib.loads(CONFIGURATION["monitor.toml"])["run"]
    assert Path(settings["checkpoint"]).is_relative_to(mount["mountPath"])


def test_executors_find_the_driver(container: dict[str, Any]) -> None:
    """By the name of the pod in its service, on ports that both publish."""
    service, pods = BY_KIND["Service"], BY_KIND["StatefulSet"]
    name = service["metadata"]["name"]
    pod = f"{pods['metadata']['name']}-0"
    assert pods["spec"]["serviceName"] == name
    assert SPARK["spark.kubernetes.driver.pod.name"] == pod
    namespace = SPARK["spark.kubernetes.namespace"]
    assert SPARK["spark.driver.host"] == f"{pod}.{name}.{namespace}.svc"
    published = {one["name"]: one["port"] for one in service["spec"]["ports"]}
    assert published == {
        one["name"]: one["containerPort"] for one in container["ports"]
    }
    assert str(published["driver"]) == SPARK["spark.driver.port"]
    assert str(published["blocks"]) == SPARK["spark.driver.blockManager.port"]
    assert service["spec"]["publishNotReadyAddresses"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_image_is_that_of_this_version(container: dict[str, Any]) -> None:
    """For driver and executors; it is made from the image of docker-compose.yml."""
    image = f"sds-monitor-spark:{version()}"
    assert container["image"] == SPARK["spark.kubernetes.container.image"] == image
    text = (DIRECTORY / "Dockerfile").read_text("utf-8")
    assert f"FROM sds-monitor:{version()}\n" in text
    pinned = (DIRECTORY.parents[1] / "pyproject.toml").read_text("utf-8")
    (spark,) = (
        line.split("==")[1].strip(' ",')
        for line in pinned.splitlines()
        if "pyspark==" in line
    )
    assert f"FROM apache/spark:{spark} " in text
