"""The deployment files fit together, as far as text can show.

No engine runs them here. We found no package on PyPI with the JSON schema of the
Compose specification, so what that asks for is not checked here; `compose-spec` 0.2.1,
a parser of it on PyPI, took docker-compose.yml when it was written.
"""

from __future__ import annotations

import configparser
import itertools
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from connectors.kafka.broker_jars import KAFKA_VERSION
from connectors.kafka.settings import FRAMES_TOPIC, MAX_MESSAGE_BYTES
from streaming.cli import WRONG_USE, group

ROOT = Path(__file__).parents[1]
PROMETHEUS = ROOT / "dashboards/provisioning/prometheus.yml"
DOCKERFILE = ROOT / "deploy/Dockerfile"
UNITS = sorted((ROOT / "deploy").glob("*.service"))

_PINNED = re.compile(r".+:v?\d+\.\d+(\.\d+)?(-[\w.-]+)?")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services of docker-compose.yml."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert isinstance(compose["services"], dict)
    return compose["services"]


def parsed(arguments: list[str]) -> dict[str, Any]:
    """The parameters of an sds-monitor command line, nothing run.

    Raises:
        click.ClickException: There is no such command or flag.
    """
    name, *rest = arguments
    context = click.Context(group, info_name="sds-monitor")
    command = group.get_command(context, name)
    assert command is not None, name
    return command.make_context(name, rest, parent=context).params


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the machine that runs the tests change no command line."""
    for name in ("HOST", "METRICS_PORT", "TOPIC", "CONFIG", "START", "CLIENT"):
        monkeypatch.delenv(f"SDS_MONITOR_{name}", raising=False)


def test_images_are_pinned(services: dict[str, Any]) -> None:
    """No image is ``latest``, and none comes from a registry that is given up."""
    (base,) = re.findall(r"^FROM (\S+)", DOCKERFILE.read_text(), re.MULTILINE)
    images = [base, *(service["image"] for service in services.values())]
    assert [image for image in images if not _PINNED.fullmatch(image)] == []
    assert not any("bitnami" in image for image in images)


def test_broker_has_the_version_of_the_embedded_one(services: dict[str, Any]) -> None:
    """What the tests run is what the example runs."""
    assert services["kafka"]["image"] == f"apache/kafka:{KAFKA_VERSION}"
    assert services["topic"]["image"] == services["kafka"]["image"]


def test_mounted_and_built_files_exist(services: dict[str, Any]) -> None:
    """Every path of this repository that the file names is there."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    for service in services.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (ROOT / source).is_file(), source
            else:
                assert source in compose["volumes"]
    build = services["monitor"]["build"]
    assert (ROOT / build["context"] / build["dockerfile"]) == DOCKERFILE


def test_files_that_the_image_copies_exist_and_are_not_ignored() -> None:
    """The image can be built from a fresh clone."""
    copies = re.findall(r"^COPY (.+) \S+$", DOCKERFILE.read_text(), re.MULTILINE)
    sources = {source for line in copies for source in line.split()}
    assert all((ROOT / source).exists() for source in sources)
    ignore = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text()
    kept = set(re.findall(r"^!(\S+)", ignore, re.MULTILINE))
    assert kept == sources


def test_dependencies_are_of_services_that_exist(services: dict[str, Any]) -> None:
    """Who waits for health waits for a service that reports it."""
    for service in services.values():
        for name, wanted in service.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in services[name]


def test_everything_is_published_on_loopback_only(services: dict[str, Any]) -> None:
    """Neither the page nor Kafka asks who is there."""
    for service in services.values():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")


def test_monitor_is_called_by_flags_that_exist(services: dict[str, Any]) -> None:
    """The command line parses, and ports, volume and probes agree with it."""
    monitor = services["monitor"]
    parameters = parsed(monitor["command"])
    port = parameters["metrics_port"]
    assert parameters["host"] == "0.0.0.0"  # noqa: S104 - inside a container
    assert monitor["ports"] == [f"127.0.0.1:{port}:{port}"]
    (volume,) = monitor["volumes"]
    assert parameters["checkpoint"].is_relative_to(volume.split(":")[1])
    assert f":{port}/readyz" in monitor["healthcheck"]["test"][-1]
    dockerfile = DOCKERFILE.read_text()
    assert f":{port}/readyz" in dockerfile
    assert f"EXPOSE {port}" in dockerfile
    assert monitor["image"].endswith(":" + _version())


def _version() -> str:
    text = (ROOT / "pyproject.toml").read_text()
    (version,) = re.findall(r'^version = "(.+)"$', text, re.MULTILINE)
    return version


def test_topic_is_made_as_the_contract_says(services: dict[str, Any]) -> None:
    """Name and settings are those of records.md, on the broker that is meant."""
    arguments = services["topic"]["command"]
    flags = dict(itertools.pairwise(arguments))
    assert flags["--topic"] == FRAMES_TOPIC
    assert f"max.message.bytes={MAX_MESSAGE_BYTES}" in arguments
    assert "message.timestamp.type=CreateTime" in arguments
    bootstrap = parsed(services["monitor"]["command"])["bootstrap"]
    assert flags["--bootstrap-server"] == bootstrap
    advertised = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"//{bootstrap}" in advertised


def test_image_does_not_run_as_root() -> None:
    """The last user is a number other than 0, which Kubernetes can check."""
    *_, user = re.findall(r"^USER (\d+)$", DOCKERFILE.read_text(), re.MULTILINE)
    assert int(user) > 0


def test_prometheus_scrapes_the_monitor(services: dict[str, Any]) -> None:
    """The target is the service and port of the Compose file."""
    config = yaml.safe_load(PROMETHEUS.read_text())
    targets = [
        target
        for job in config["scrape_configs"]
        for group_ in job["static_configs"]
        for target in group_["targets"]
    ]
    port = parsed(services["monitor"]["command"])["metrics_port"]
    assert f"monitor:{port}" in targets


def test_prometheus_accepts_its_configuration() -> None:
    """Promtool has no complaint."""
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing (Debian: package prometheus)"
    checked = subprocess.run(
        [promtool, "check", "config", PROMETHEUS], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_unit_calls_the_command_by_flags_that_exist(path: Path) -> None:
    """The command line of a systemd unit parses; wrong use is not restarted."""
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path)
    service = unit["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert Path(program).name == "sds-monitor"
    parameters = parsed(arguments)
    kept = parameters["checkpoint" if arguments[0] == "run" else "state"]
    assert kept.is_relative_to(Path("/var/lib") / service["StateDirectory"])
    assert service["RestartPreventExitStatus"] == str(WRONG_USE)


def test_both_long_running_commands_have_a_unit() -> None:
    """The monitor, and the mirror that feeds it."""
    names = {path.stem for path in UNITS}
    assert names == {"sds-monitor", "sds-monitor-mirror"}
