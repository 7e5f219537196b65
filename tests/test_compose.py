"""docker-compose.yml fits the image, the programs and the Compose specification.

No engine runs it here.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from connectors.broker.jars import KAFKA_VERSION
from connectors.files.channel_table import read_entries
from connectors.kafka.settings import FRAMES_TOPIC, MAX_MESSAGE_BYTES
from connectors.simulator.scenario_files import load_scenario
from dashboards import Links
from tests.support.compose_schema import compose_schema
from tests.support.deployment import (
    ROOT,
    compose,
    here,
    mounts,
    parameters,
    service,
    version,
    volume_targets,
)

DOCKERFILE = ROOT / "deploy/Dockerfile"
SERVICES = tuple(compose()["services"])
OURS = ("monitor", "mirror", "audit", "simulator")

_PINNED = re.compile(r".+:v?\d+\.\d+(\.\d+)?(-[\w.-]+)?")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the machine that runs the tests change no command line."""
    for name in ("HOST", "METRICS_PORT", "TOPIC", "CONFIG", "START", "SCENARIO"):
        monkeypatch.delenv(f"SDS_MONITOR_{name}", raising=False)


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of the Compose specification."""
    import jsonschema  # Two seconds, at the collection in each worker.

    schema = compose_schema(tmp_path_factory.mktemp("go"))
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.needs("go")
def test_compose_file_follows_the_specification(validator: Any) -> None:
    """No key is misspelt, and every value has the right type."""
    assert [error.message for error in validator.iter_errors(compose())] == []


@pytest.mark.needs("go")
def test_schema_finds_a_misspelt_key(validator: Any) -> None:
    """At any depth, so the check above can fail."""
    wrong = {"services": {"kafka": {"healthcheck": {"interval_s": "10s"}}}}
    errors = [error.message for error in validator.iter_errors(wrong)]
    assert any("'interval_s'" in error for error in errors)


def test_images_are_pinned() -> None:
    """No image is ``latest`` or from an abandoned registry."""
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE.read_text(), re.MULTILINE)
    (base,) = set(bases)
    images = [base, *(service(name)["image"] for name in SERVICES)]
    assert [image for image in images if not _PINNED.fullmatch(image)] == []
    assert not any("bitnami" in image for image in images)


def test_broker_has_the_version_of_the_embedded_one() -> None:
    """Tests and example run the same Kafka."""
    assert service("kafka")["image"] == f"apache/kafka:{KAFKA_VERSION}"
    assert service("topic")["image"] == service("kafka")["image"]


def test_mounted_files_exist() -> None:
    """Files and directories are read-only, and volumes are declared."""
    for name in SERVICES:
        for mount in mounts(name):
            assert mount.source.exists(), mount.source
            assert mount.is_read_only, mount.source
            if mount.source.is_dir():
                assert any(mount.source.iterdir()), mount.source
    used = {volume for name in SERVICES for volume in volume_targets(name)}
    assert used == compose()["volumes"].keys()


def test_dependencies_are_of_services_that_exist() -> None:
    """A dependency on health needs a service with a health check."""
    for name in SERVICES:
        for needed, wanted in service(name).get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in service(needed)


@pytest.mark.parametrize("name", SERVICES)
def test_long_running_services_restart_and_have_health_checks(name: str) -> None:
    """Only the topic's service ends; the simulator has no port to probe."""
    described = service(name)
    if name == "topic":
        assert described["restart"] == "no"
        return
    assert described["restart"] == "unless-stopped"
    health = described["healthcheck"]
    assert health.get("disable") or health["test"][0] == "CMD"
    assert health.get("disable", False) is (name == "simulator")


def test_everything_is_published_on_loopback_only() -> None:
    """Pages and Kafka have no login; all ports differ."""
    ports = [port for name in SERVICES for port in service(name).get("ports", ())]
    outside = []
    for port in ports:
        host, published, inside = port.split(":")
        assert host == "127.0.0.1"
        # Links from one page to another are the same on both sides.
        assert published == inside
        outside.append(published)
    assert len(set(outside)) == len(outside)


def test_optional_services_have_profiles() -> None:
    """Without a profile there are neither simulated traffic nor a node."""
    profiles = {name: service(name).get("profiles", []) for name in SERVICES}
    chosen = {name: of for name, of in profiles.items() if of}
    assert chosen == {
        "simulator": ["simulator"],
        "mirror": ["mirror"],
        "audit": ["mirror"],
    }


@pytest.mark.parametrize("name", OURS)
def test_our_services_run_the_image_of_this_version(name: str) -> None:
    """One image, built from this repository."""
    assert service(name)["image"] == f"sds-monitor:{version()}"
    build = service(name)["build"]
    assert (ROOT / build["context"] / build["dockerfile"]) == DOCKERFILE


@pytest.mark.parametrize(
    ("name", "kept"), [("monitor", "checkpoint"), ("mirror", "state")]
)
def test_services_use_existing_flags(name: str, kept: str) -> None:
    """The command line parses, and ports, volume and probe agree with it."""
    given = parameters(service(name)["command"])
    port = given["port"]
    assert given["host"] == "0.0.0.0"  # noqa: S104 - inside a container
    assert service(name)["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f":{port}/readyz" in service(name)["healthcheck"]["test"][-1]
    (volume,) = volume_targets(name).values()
    assert given[kept].is_relative_to(volume)
    assert f"install --directory --owner monitor {volume}\n" in DOCKERFILE.read_text()


def test_image_has_port_and_probe_of_the_monitor() -> None:
    """They are the same as with Compose."""
    port = parameters(service("monitor")["command"])["port"]
    dockerfile = DOCKERFILE.read_text()
    assert f":{port}/readyz" in dockerfile
    assert f"EXPOSE {port}" in dockerfile


def test_monitor_reads_a_channel_table_that_can_be_replaced() -> None:
    """Its directory is mounted, not the file, and the example is valid."""
    table = parameters(service("monitor")["command"])["channels"]
    assert read_entries(here("monitor", table))
    assert all(mount.source.is_dir() for mount in mounts("monitor"))


def test_channel_table_names_the_simulators_channels() -> None:
    """With profile `simulator` the example's names are displayed."""
    scenario = load_scenario(parameters(service("simulator")["command"])["scenario"])
    channels = {one for group in scenario.channels for one in group.channel_ids()}
    table = parameters(service("monitor")["command"])["channels"]
    (named, _) = read_entries(here("monitor", table))
    assert named.match in channels


def test_mirror_gets_its_nodes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each variable is one of its settings; several nodes are possible."""
    passed = {
        "SDS_MONITOR_REST": "http://one:8645 http://two:8645",
        "SDS_MONITOR_REST_AUTHORIZATION": "Bearer secret",
        "SDS_MONITOR_PUBSUB_TOPIC": "/waku/2/rs/1/0",
        "SDS_MONITOR_CONTENT_TOPIC": "/a/1/b/proto /a/1/c/proto",
        "SDS_MONITOR_CACHE_MESSAGES": "1000",
    }
    assert service("mirror")["environment"] == list(passed)
    for variable, value in passed.items():
        monkeypatch.setenv(variable, value)
    given = parameters(service("mirror")["command"])
    assert given["urls"] == ("http://one:8645", "http://two:8645")
    assert given["authorization"] == "Bearer secret"
    assert given["pubsub_topics"] == ("/waku/2/rs/1/0",)
    assert given["content_topics"] == ("/a/1/b/proto", "/a/1/c/proto")
    assert given["cache_messages"] == 1000


def test_audit_compares_what_the_mirror_mirrors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same nodes and topics; its port and probe agree with its flags."""
    environment = service("audit")["environment"]
    assert set(environment) < set(service("mirror")["environment"])
    monkeypatch.setenv("SDS_MONITOR_REST", "http://one:8645 http://two:8645")
    monkeypatch.setenv("SDS_MONITOR_PUBSUB_TOPIC", "/waku/2/rs/1/0")
    words = service("audit")["command"]
    assert words[:2] == ["audit", "compare"]
    given = parameters(words)
    assert given["urls"] == ("http://one:8645", "http://two:8645")
    port = given["port"]
    assert service("audit")["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f":{port}/healthz" in service("audit")["healthcheck"]["test"][-1]


def test_simulator_runs_in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """For at least a day; scenario and seed can be chosen."""
    assert service("simulator")["environment"] == [
        "SDS_MONITOR_SCENARIO",
        "SDS_MONITOR_SEED",
    ]
    monkeypatch.setenv("SDS_MONITOR_SCENARIO", "quiet")
    monkeypatch.setenv("SDS_MONITOR_SEED", "7")
    given = parameters(service("simulator")["command"])
    assert (given["scenario"], given["seed"]) == ("quiet", 7)
    assert given["speed"] == 1
    assert given["duration"] >= 86_400


def test_topic_has_the_documented_settings() -> None:
    """Name and settings of docs/records.md, on the same broker for all."""
    arguments = service("topic")["command"]
    flags = dict(itertools.pairwise(arguments))
    assert flags["--topic"] == FRAMES_TOPIC
    assert f"max.message.bytes={MAX_MESSAGE_BYTES}" in arguments
    assert "message.timestamp.type=CreateTime" in arguments
    bootstrap = flags["--bootstrap-server"]
    advertised = service("kafka")["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"//{bootstrap}" in advertised
    for name in OURS:
        command = service(name)["command"]
        assert command[command.index("--bootstrap") + 1] == bootstrap


def test_links_lead_to_published_ports() -> None:
    """Alerts and dashboards use addresses that work from outside."""
    for name, url in (
        ("monitor", Links().monitor_url),
        ("grafana", Links().grafana_url),
    ):
        (port,) = service(name)["ports"]
        assert url == f"http://localhost:{port.split(':')[1]}"


def test_image_does_not_run_as_root() -> None:
    """The user is a number other than 0, which Kubernetes can check."""
    *_, user = re.findall(r"^USER (\d+)$", DOCKERFILE.read_text(), re.MULTILINE)
    assert int(user) > 0


def test_files_copied_into_the_image_are_not_ignored() -> None:
    """The image can be built from a fresh clone."""
    ignore = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text()
    kept = set(re.findall(r"^!(\S+)", ignore, re.MULTILINE))
    assert kept == set(_copied())


@pytest.mark.slow
def test_wheel_has_all_files_needed_at_run_time(tmp_path: Path) -> None:
    """Built from the image's files, with templates, scenarios and runbooks."""
    for name in _copied():
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "node_modules")
            shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path)
    build = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."]
    subprocess.run([sys.executable, "-m", *build], cwd=tmp_path, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    read = [
        *ROOT.glob("connectors/web/*/*.*"),
        *ROOT.glob("connectors/simulator/scenarios/*.toml"),
        *ROOT.glob("dashboards/runbooks/*.md"),
    ]
    assert {path.suffix for path in read} >= {".html", ".js", ".toml", ".md"}
    read = [path for path in read if "__pycache__" not in path.parts]
    assert {str(path.relative_to(ROOT)) for path in read} - packed == set()


def _copied() -> list[str]:
    copies = re.findall(r"^COPY ([^-].*) \S+$", DOCKERFILE.read_text(), re.MULTILINE)
    return [source for line in copies for source in line.split()]
