"""Configuration of Prometheus, Alertmanager and Grafana in docker-compose.yml."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.rules.inhibitions import INHIBITIONS
from tests.support.deployment import (
    ROOT,
    addresses,
    here,
    mounts,
    options,
    parameters,
    service,
    staged,
)

PROVISIONING = ROOT / "dashboards/provisioning"
PROMETHEUS = yaml.safe_load((PROVISIONING / "prometheus.yml").read_text())
ALERTMANAGER = yaml.safe_load((PROVISIONING / "alertmanager.yml").read_text())
(SOURCE,) = yaml.safe_load(
    (PROVISIONING / "grafana/datasources/prometheus.yml").read_text()
)["datasources"]
(PROVIDER,) = yaml.safe_load((PROVISIONING / "grafana/dashboards/sds.yml").read_text())[
    "providers"
]
RULES = ROOT / "dashboards/generated/prometheus"


def told(*command: str | Path) -> str:
    """What a program of Debian's packages says; it must be pleased."""
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


@pytest.mark.needs("prometheus", "prometheus-alertmanager")
@pytest.mark.parametrize(
    ("name", "program"),
    [("prometheus", "prometheus"), ("alertmanager", "prometheus-alertmanager")],
)
def test_servers_use_existing_options(name: str, program: str) -> None:
    """As far as Debian's older release has them; volumes agree with them."""
    known = set(re.findall(r"--[a-z][a-z.-]+", told(program, "--help")))
    given = options(name)
    assert given.keys() - known == set()
    (address,) = (one for one in addresses() if one.startswith(f"{name}:"))
    assert given["--web.external-url"] == f"http://localhost:{address.split(':')[1]}"


@pytest.mark.needs("promtool")
def test_prometheus_accepts_its_configuration_and_all_rules(tmp_path: Path) -> None:
    """With the container's layout, so that both rule files are found."""
    root = staged("prometheus", tmp_path)
    file = root / options("prometheus")["--config.file"].lstrip("/")
    said = told("promtool", "check", "config", file)
    found = set(re.findall(r"Checking (.+)", said)) - {str(file)}
    assert {Path(one).name for one in found} == {"recording.yml", "alerts.yml"}


def test_prometheus_uses_service_names_and_ports() -> None:
    """Scrape targets and Alertmanager are services with these ports."""
    asked = {target for job in PROMETHEUS["scrape_configs"] for target in _targets(job)}
    told_of = {
        target
        for group in PROMETHEUS["alerting"]["alertmanagers"]
        for target in _targets(group)
    }
    assert asked | told_of <= addresses()
    assert told_of == {"alertmanager:9093"}
    by_job = {job["job_name"]: _targets(job) for job in PROMETHEUS["scrape_configs"]}
    for job, name in (("sds-monitor", "monitor"), ("sds-mirror", "mirror")):
        port = parameters(service(name)["command"])["port"]
        assert by_job[job] == {f"{name}:{port}"}


def _targets(config: dict[str, Any]) -> set[str]:
    """`name:port` of all, whether listed or found by DNS; itself is prometheus."""
    listed = {
        target.replace("localhost:", "prometheus:")
        for group in config.get("static_configs", ())
        for target in group["targets"]
    }
    found = {
        f"{name}:{group['port']}"
        for group in config.get("dns_sd_configs", ())
        for name in group["names"]
    }
    return listed | found


@pytest.mark.needs("amtool")
def test_alertmanager_accepts_its_configuration(tmp_path: Path) -> None:
    """Amtool finds no problem in the container's file."""
    root = staged("alertmanager", tmp_path)
    file = root / options("alertmanager")["--config.file"].lstrip("/")
    told("amtool", "check-config", file)


def test_critical_alerts_are_sent_first() -> None:
    """Other severities are grouped for longer, and all are sent."""
    route = ALERTMANAGER["route"]
    (critical,) = (
        one for one in route["routes"] if one["matchers"] == ['severity="critical"']
    )
    for wait in ("group_wait", "group_interval"):
        first, others = (_seconds(one[wait]) for one in (critical, route))
        assert first < others
    assert {one["receiver"] for one in (route, *route["routes"])} == {"operators"}


def test_inhibition_is_that_of_the_rules() -> None:
    """The alerts exist, because a misspelt one would do nothing."""
    rules = [
        {
            "source_matchers": list(one.sources),
            "target_matchers": list(one.targets),
            "equal": list(one.equal),
        }
        for one in INHIBITIONS
    ]
    assert ALERTMANAGER["inhibit_rules"] == rules
    (groups,) = yaml.safe_load((RULES / "alerts.yml").read_text()).values()
    alerts = {rule["alert"] for group in groups for rule in group["rules"]}
    named = set(re.findall(r"\bSds\w+", str(rules)))
    assert named - alerts == set()


def test_grafana_finds_its_data_source() -> None:
    """It is Prometheus, with its scrape interval."""
    assert SOURCE["url"].removeprefix("http://") in addresses()
    interval = PROMETHEUS["global"]["scrape_interval"]
    assert SOURCE["jsonData"]["timeInterval"] == interval


def test_grafana_finds_its_provisioning_and_dashboards() -> None:
    """Mounts are where Grafana reads; the home page is a dashboard."""
    looks_in = Path("/etc/grafana/provisioning")
    by_target = {mount.target: mount.source for mount in mounts("grafana")}
    for kind in ("datasources", "dashboards"):
        assert by_target.pop(looks_in / kind) == PROVISIONING / "grafana" / kind
    assert list(by_target) == [Path(PROVIDER["options"]["path"])]
    environment = service("grafana")["environment"]
    home = Path(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert here("grafana", home).is_file()


def test_grafana_is_offline_and_needs_no_login() -> None:
    """It sends and fetches nothing."""
    environment = service("grafana")["environment"]
    phone = [
        name for name in environment if name.startswith(("GF_ANALYTICS", "GF_NEWS"))
    ]
    assert len(phone) == 5
    assert {environment[name] for name in phone} == {"false"}
    assert environment["GF_PLUGINS_PREINSTALL_DISABLED"] == "true"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert not any(
        "PASSWORD" in name or "INSTALL_PLUGINS" in name for name in environment
    )


@pytest.mark.parametrize(
    "uid", ["sds-fleet", "sds-channel", "sds-repair", "sds-capacity", "sds-monitor"]
)
def test_dashboards_work_with_the_data_source(uid: str) -> None:
    """Each needs only a source of that type, and no other uid."""
    directory = here("grafana", Path(PROVIDER["options"]["path"]))
    text = (directory / f"{uid}.json").read_text()
    dashboard = json.loads(text)
    assert dashboard["uid"] == uid
    (variable,) = (
        one for one in dashboard["templating"]["list"] if one["type"] == "datasource"
    )
    assert variable["query"] == SOURCE["type"]
    asked = set(re.findall(r'"type": "prometheus",\s*"uid": "([^"]+)"', text))
    assert asked <= {"${" + variable["name"] + "}", SOURCE["uid"]}


def _seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[duration[-1]]
