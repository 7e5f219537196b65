"""The Helm chart: its form, its values, and that its parts fit one another.

No cluster runs it here. To build Helm takes minutes, so its tests are long ones.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import tarfile
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from connectors.files.channel_table import read_entries
from dashboards import Links
from dashboards.build import files
from deploy import make_chart
from deploy.make_chart import CHART, KUBERNETES, MANIFEST
from tests.support.deployment import ROOT, parameters, version
from tests.support.kubernetes import Object, Rendered, helm, rendered, write_schemas

PAGE = ROOT / "docs/kubernetes.md"
BLOCKS = [
    block
    for page in (PAGE, ROOT / "docs/upgrade.md")
    for block in re.findall(
        r"^ *```yaml\n(.*?)^ *```$", page.read_text("utf-8"), re.M | re.S
    )
]
EXECUTORS, EVERYTHING = "executors-values.yaml", "everything-values.yaml"
VALUES = (None, EXECUTORS, EVERYTHING)
VARIANTS = pytest.mark.parametrize("values", VALUES, ids=lambda name: name or "default")
PORTS = {"sds-monitor": 9108, "sds-monitor-mirror": 9109, "sds-monitor-audit": 9110}
FOR_HELM = pytest.mark.needs("helm")
LINKS = Links(
    "https://sds.example.org",
    "https://grafana.example.org",
    "https://docs.example.org/runbooks",
)


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Place of the schemas of all kinds."""
    return write_schemas(tmp_path_factory.mktemp("schemas"))


def kubeconform(place: str, text: str) -> subprocess.CompletedProcess[str]:
    """Validate objects; what has no schema is an error."""
    return subprocess.run(
        ["kubeconform", "-strict", "-schema-location", place, "-"],
        input=text,
        capture_output=True,
        text=True,
    )


def spark_of(values: str) -> dict[str, str]:
    """Return the lines of spark-defaults.conf."""
    data = rendered(values).get("ConfigMap", "sds-monitor")["data"]
    lines = data["spark-defaults.conf"].splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def settings_of(values: str | None) -> dict[str, Any]:
    """Return the settings of all commands."""
    data = rendered(values).get("ConfigMap", "sds-monitor")["data"]
    return tomllib.loads(data["settings.toml"])


def test_schema_has_the_settings_of_the_commands() -> None:
    """After a change of an option run ``python -m deploy.make_chart``."""
    assert json.loads(make_chart.SCHEMA.read_text("utf-8")) == make_chart.schema()


@pytest.mark.long
@FOR_HELM
def test_manifest_is_made_of_the_chart() -> None:
    """After a change of the chart run ``python -m deploy.make_chart``."""
    assert MANIFEST.read_text("utf-8") == make_chart.manifest()


def test_chart_has_the_version_of_the_monitor() -> None:
    """The image has it too."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert chart["version"] == chart["appVersion"] == version()


def test_every_value_has_a_comment() -> None:
    """Directly above it; a group of values has one if its name is not enough."""
    lines = (CHART / "values.yaml").read_text("utf-8").splitlines()
    groups = {
        line
        for line, after in itertools.pairwise(lines)
        if line.endswith(":") and after.startswith(" ")
    }
    # Below these names are words of Kubernetes and of Grafana.
    foreign = ("    requests:", "    limits:", "      cpu:", "      memory:")
    bare = [
        line
        for above, line in itertools.pairwise(lines)
        if line.strip() and not line.lstrip().startswith("#")
        if line not in groups and not above.lstrip().startswith("#")
        if not line.startswith((*foreign, "    grafana_dashboard:"))
    ]
    assert bare == []


@pytest.mark.long
@FOR_HELM
@VARIANTS
def test_helm_finds_nothing_wrong(values: str | None) -> None:
    """Warnings count too."""
    given = ("--values", str(CHART / "ci" / values)) if values else ()
    done = helm("lint", "--strict", str(CHART), *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout


@pytest.mark.long
@pytest.mark.needs("helm", "kubeconform", "go")
@VARIANTS
def test_objects_follow_the_schemas(values: str | None, schemas: str) -> None:
    """All fields are known, and of the right type; the pod of executors too."""
    text = rendered(values).text
    data = rendered(values).get("ConfigMap", "sds-monitor")["data"]
    done = kubeconform(schemas, text + "\n---\n" + data.get("executor.yaml", ""))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.needs("helm", "kubeconform", "go")
@pytest.mark.parametrize(
    ("kind", "path", "wrong"),
    [
        ("StatefulSet", ("spec",), {"replica": 1}),
        ("StatefulSet", ("spec",), {"minReadySeconds": "2"}),
        ("ServiceMonitor", ("spec",), {"endpoint": []}),
        ("PrometheusRule", ("spec", "groups", 0), {"period": "15s"}),
        ("NetworkPolicy", ("spec",), {"ingres": []}),
    ],
)
def test_wrong_object_is_noticed(
    kind: str, path: tuple[str | int, ...], wrong: Object, schemas: str
) -> None:
    """A field that does not exist, and a number as text."""
    described = next(o for o in rendered(EVERYTHING).objects if o["kind"] == kind)
    inner = changed = json.loads(json.dumps(described))
    for step in path:
        inner = inner[step]
    inner.update(wrong)
    done = kubeconform(schemas, yaml.safe_dump(changed))
    assert done.returncode == 1
    assert next(iter(wrong)) in done.stdout + done.stderr


@pytest.mark.long
@FOR_HELM
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("mirrors.enabled=true", "'mirrors'"),
        ("monitor.storage.clasName=fast", "'clasName'"),
        ("monitor.settings.label-budgte=500", "'label-budgte'"),
        ("monitor.settings.label-budget=-1", "/monitor/settings/label-budget"),
        ("monitor.observer.ack_deadline=5", "'ack_deadline'"),
        ("monitor.observer.ack_deadline_ms=-5", "/monitor/observer/ack_deadline_ms"),
        ("monitor.settings.trigger=-1", "/monitor/settings/trigger"),
        ("monitor.settings.trigger=5 minutes", "/monitor/settings/trigger"),
        ("monitor.cores=0", "/monitor/cores"),
        ("monitor.executors.count=-1", "/monitor/executors/count"),
        ("monitor.storage.size=20 GB", "/monitor/storage/size"),
        ("monitor.settings.checkpoint=s3a://bucket", "'checkpoint'"),
        ("settings.kafka-password=secret", "'kafka-password'"),
        ("settings.bootstrap=null", "'bootstrap'"),
        ("mirror.enabled=true", "'rest'"),
        ("audit.enabled=true", "'rest'"),
        ("web.scheme=ftp", "/web/scheme"),
        ("serviceMonitor.jobPrefix=east side", "/serviceMonitor/jobPrefix"),
        ("links.monitor=sds.example.org", "/links/monitor"),
    ],
)
def test_wrong_value_is_refused_by_name(given: str, named: str) -> None:
    """Before anything is installed."""
    done = helm("template", "sds-monitor", str(CHART), "--set", given)
    assert done.returncode != 0
    assert named in done.stderr
    assert done.stdout == ""


@pytest.mark.long
@FOR_HELM
@VARIANTS
def test_commands_and_settings_are_known(values: str | None, tmp_path: Path) -> None:
    """As the containers get them: the monitor alone, with executors, with all parts."""
    chart = rendered(values)
    data = chart.get("ConfigMap", "sds-monitor")["data"]
    for name, text in data.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "settings.toml").write_text(
        data["settings.toml"].replace("/etc/sds-monitor", str(tmp_path))
    )
    for secret in ("secrets/web.yml", "secrets/kafka-ca.pem"):
        (tmp_path / secret).parent.mkdir(exist_ok=True)
        (tmp_path / secret).touch()
    parts = chart.names("StatefulSet")
    assert set(parts) == (set(PORTS) if values == EVERYTHING else {"sds-monitor"})
    for name in parts:
        container = chart.container(name)
        assert container["command"] == ["sds-monitor"]
        mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
        words = [
            word.replace(mounts["configuration"], str(tmp_path))
            for word in container["args"]
        ]
        given = parameters(words)
        assert given["port"] == PORTS[name]
        kept = {"sds-monitor": "checkpoint", "sds-monitor-mirror": "state"}.get(name)
        assert kept is None or given[kept].is_relative_to(mounts["state"])
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] == "http"
        (http,) = (p for p in container["ports"] if p["name"] == "http")
        assert http["containerPort"] == PORTS[name]
        called = {name, f"{name}.sds", f"{name}.sds.svc"}
        assert called <= set(settings_of(values)["allowed-host"])
    if values == EVERYTHING:
        assert read_entries(tmp_path / "channels.toml")


@pytest.mark.long
@FOR_HELM
@VARIANTS
def test_pods_have_no_rights_that_they_do_not_need(values: str | None) -> None:
    """No root, no capabilities, a root file system that cannot be written."""
    chart = rendered(values)
    pods = [chart.pod(name) for name in chart.names("StatefulSet")]
    if text := chart.get("ConfigMap", "sds-monitor")["data"].get("executor.yaml"):
        pods.append(yaml.safe_load(text)["spec"])
    for pod in pods:
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["runAsUser"] > 0
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        # Where they write: temporary files, and what executors fetch.
        (temporary,) = (v for v in pod["volumes"] if v["name"] == "temporary")
        assert temporary["emptyDir"] == {}
        (mount,) = (m for m in container["volumeMounts"] if m["name"] == "temporary")
        assert container["workingDir"] == mount["mountPath"]
        # Only the driver calls the API of Kubernetes.
        drives = "serviceAccountName" in pod
        assert drives == (values == EXECUTORS and container["name"] == "monitor")
        assert drives or pod["automountServiceAccountToken"] is False


@pytest.mark.long
@FOR_HELM
def test_secrets_are_mounted_and_not_copied() -> None:
    """By reference: as variables, and as files that settings name."""
    chart = rendered(EVERYTHING)
    assert chart.names("Secret") == []
    for name in PORTS:
        pod, container = chart.pod(name), chart.container(name)
        assert container["envFrom"] == [
            {"secretRef": {"name": "sds-monitor-environment"}}
        ]
        (mount,) = (m for m in container["volumeMounts"] if m["name"] == "secrets")
        (volume,) = (v for v in pod["volumes"] if v["name"] == "secrets")
        assert volume["secret"]["secretName"] == "sds-monitor-files"
        assert settings_of(EVERYTHING)["web-config"] == f"{mount['mountPath']}/web.yml"


@pytest.mark.long
@FOR_HELM
def test_driver_and_executors_share_the_checkpoint() -> None:
    """The same claim, at the same path, with the checkpoint in it."""
    prefix = "spark.kubernetes.executor.volumes.persistentVolumeClaim.checkpoint."
    chart, spark = rendered(EXECUTORS), spark_of(EXECUTORS)
    pod, container = chart.pod("sds-monitor"), chart.container("sds-monitor")
    (volume,) = (v for v in pod["volumes"] if v["name"] == "state")
    (mount,) = (m for m in container["volumeMounts"] if m["name"] == "state")
    name = volume["persistentVolumeClaim"]["claimName"]
    claim = chart.get("PersistentVolumeClaim", name)
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert spark[f"{prefix}options.claimName"] == name
    assert spark[f"{prefix}mount.path"] == mount["mountPath"]
    assert spark[f"{prefix}mount.readOnly"] == "false"
    settings = settings_of(EXECUTORS)["run"]
    assert Path(settings["checkpoint"]).is_relative_to(mount["mountPath"])
    assert settings["master"].startswith("k8s://https://")
    (conf,) = (v for v in container["env"] if v["name"] == "SPARK_CONF_DIR")
    (mount,) = (m for m in container["volumeMounts"] if m["name"] == "configuration")
    assert conf["value"] == mount["mountPath"]
    assert Path(spark["spark.kubernetes.executor.podTemplateFile"]) == Path(
        mount["mountPath"], "executor.yaml"
    )


@pytest.mark.long
@FOR_HELM
def test_executors_find_the_driver() -> None:
    """By the name of the pod in its service, on ports that both publish."""
    chart, spark = rendered(EXECUTORS), spark_of(EXECUTORS)
    service, pods = (
        chart.get(kind, "sds-monitor") for kind in ("Service", "StatefulSet")
    )
    container = chart.container("sds-monitor")
    name = service["metadata"]["name"]
    pod = f"{pods['metadata']['name']}-0"
    assert pods["spec"]["serviceName"] == name
    assert spark["spark.kubernetes.driver.pod.name"] == pod
    namespace = spark["spark.kubernetes.namespace"]
    assert spark["spark.driver.host"] == f"{pod}.{name}.{namespace}.svc"
    published = {p["name"]: p["port"] for p in service["spec"]["ports"]}
    assert published == {p["name"]: p["containerPort"] for p in container["ports"]}
    assert str(published["driver"]) == spark["spark.driver.port"]
    assert str(published["blocks"]) == spark["spark.driver.blockManager.port"]
    assert service["spec"]["publishNotReadyAddresses"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    # Only executors may reach them.
    *_, rule = chart.get("NetworkPolicy", "sds-monitor")["spec"]["ingress"]
    (peer,) = rule["from"]
    executor = yaml.safe_load(
        chart.get("ConfigMap", "sds-monitor")["data"]["executor.yaml"]
    )
    labels = executor["metadata"]["labels"].items()
    assert peer["podSelector"]["matchLabels"].items() <= labels
    assert [p["port"] for p in rule["ports"]] == ["driver", "blocks"]


@pytest.mark.long
@FOR_HELM
def test_package_has_the_generated_files(tmp_path: Path) -> None:
    """In the chart they are links, which no longer work elsewhere."""
    done = subprocess.run(
        ["helm", "package", CHART, "--destination", tmp_path], capture_output=True
    )
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / f"sds-monitor-{version()}.tgz") as archive:
        packed = {member.name for member in archive if member.isfile()}
    expected = {f"sds-monitor/files/{path}" for path in files(LINKS)}
    assert expected <= packed


@pytest.mark.long
@FOR_HELM
def test_names_are_short_enough() -> None:
    """Also those of a release whose name has the 53 characters that Helm allows."""
    values = ("--values", str(CHART / "ci" / EVERYTHING))
    done = helm("template", "x" * 53, str(CHART), *values)
    assert done.returncode == 0, done.stderr
    sets = [o for o in yaml.safe_load_all(done.stdout) if o["kind"] == "StatefulSet"]
    assert len(sets) == len(PORTS)
    # The controller appends a hash for the label of a pod.
    assert max(len(o["metadata"]["name"]) for o in sets) + len("-0123456789") <= 63


@pytest.mark.long
@FOR_HELM
def test_executors_have_the_files_of_the_driver() -> None:
    """Certificates for Kafka, at the same path."""
    chart = rendered(EXECUTORS)
    text = chart.get("ConfigMap", "sds-monitor")["data"]["executor.yaml"]
    pods = (chart.pod("sds-monitor"), yaml.safe_load(text)["spec"])
    ca_file = settings_of(EXECUTORS)["kafka-ca-file"]
    for pod in pods:
        (volume,) = (v for v in pod["volumes"] if v["name"] == "secrets")
        assert volume["secret"]["secretName"] == "sds-monitor-files"
        (mount,) = (
            m for m in pod["containers"][0]["volumeMounts"] if m["name"] == "secrets"
        )
        assert Path(ca_file).parent == Path(mount["mountPath"])


@pytest.mark.long
@FOR_HELM
def test_spark_gets_numbers_as_they_are_given(tmp_path: Path) -> None:
    """A template prints large ones as 1.2e+06, with which no Spark starts."""
    given = tmp_path / "values.yaml"
    given.write_text(
        "monitor:\n  spark:\n    spark.network.timeout: 1200000\n"
        "    spark.memory.fraction: 0.5\n    spark.speculation: false\n"
        '    spark.driver.extraJavaOptions: -Da="<b>"\n'
    )
    done = helm("template", "sds-monitor", str(CHART), "--values", str(given))
    assert done.returncode == 0, done.stderr
    (found,) = (
        o
        for o in yaml.safe_load_all(done.stdout)
        if o["kind"] == "ConfigMap" and o["metadata"]["name"] == "sds-monitor"
    )
    assert found["data"]["spark-defaults.conf"].splitlines() == [
        'spark.driver.extraJavaOptions -Da="<b>"',
        "spark.memory.fraction 0.5",
        "spark.network.timeout 1200000",
        "spark.speculation false",
    ]


@pytest.mark.long
@FOR_HELM
def test_spark_setting_of_the_user_replaces_that_of_the_chart(tmp_path: Path) -> None:
    """Also if it is zero or false."""
    given = tmp_path / "values.yaml"
    settings = {"spark.executor.memoryOverhead": 0, "spark.scheduler.mode": "FAIR"}
    given.write_text(yaml.safe_dump({"monitor": {"spark": settings}}))
    done = helm(
        *("template", "sds-monitor", str(CHART), "--values", str(given)),
        *("--values", str(CHART / "ci" / EXECUTORS)),
    )
    assert done.returncode == 0, done.stderr
    for name, value in settings.items():
        assert re.findall(rf"^ *{name} (.*)$", done.stdout, re.M) == [str(value)]


@pytest.mark.long
@FOR_HELM
def test_channels_may_begin_with_an_indented_line(tmp_path: Path) -> None:
    """TOML allows it; the ConfigMap has the text as it was given."""
    text = '  [channels.a]\n  name = "one"\n[channels.b]\nname = "two"\n'
    given = tmp_path / "values.yaml"
    given.write_text(json.dumps({"monitor": {"channels": text}}))
    done = helm("template", "sds-monitor", str(CHART), "--values", str(given))
    assert done.returncode == 0, done.stderr
    found = Rendered(done.stdout, list(yaml.safe_load_all(done.stdout)))
    data = found.get("ConfigMap", "sds-monitor")["data"]
    assert tomllib.loads(data["channels.toml"]) == tomllib.loads(text)


@pytest.mark.long
@FOR_HELM
def test_image_is_that_of_this_version() -> None:
    """For driver and executors; it is made from the image of docker-compose.yml."""
    container, spark = rendered(EXECUTORS).container("sds-monitor"), spark_of(EXECUTORS)
    image = f"sds-monitor-spark:{version()}"
    assert container["image"] == spark["spark.kubernetes.container.image"] == image
    text = (ROOT / "deploy/kubernetes/Dockerfile").read_text("utf-8")
    assert f"FROM sds-monitor:{version()}\n" in text
    pinned = (ROOT / "pyproject.toml").read_text("utf-8")
    (spark_version,) = (
        line.split("==")[1].strip(' ",')
        for line in pinned.splitlines()
        if "pyspark==" in line
    )
    assert f"FROM apache/spark:{spark_version} " in text


@pytest.mark.long
@FOR_HELM
@VARIANTS
def test_egress_rules_apply_to_all_pods(values: str | None) -> None:
    """Monitor and executors may also reach one another, and the audit."""
    chart = rendered(values)
    given = ("ci/" + values) if values else "values.yaml"
    limits = yaml.safe_load((CHART / given).read_text("utf-8"))["networkPolicy"]
    rules = limits["egress"]
    for name in chart.names("NetworkPolicy"):
        policy = chart.get("NetworkPolicy", name)["spec"]
        assert ("Egress" in policy["policyTypes"]) == bool(rules)
        found = policy.get("egress", [])
        if rules and name in ("sds-monitor", "sds-monitor-executor"):
            *found, inside = found
            (peer,) = inside["to"]
            labels = peer["podSelector"]["matchLabels"]
            for one in chart.names("NetworkPolicy"):
                selected = chart.get("NetworkPolicy", one)["spec"]["podSelector"]
                assert labels.items() <= selected["matchLabels"].items()
        assert found == rules


@pytest.mark.long
@FOR_HELM
def test_executors_pull_the_image_like_the_driver() -> None:
    """With the same policy, and with all logins; without logins, none is named."""
    chart, spark = rendered(EXECUTORS), spark_of(EXECUTORS)
    prefix = "spark.kubernetes.container.image"
    policy = chart.container("sds-monitor")["imagePullPolicy"]
    assert spark[f"{prefix}.pullPolicy"] == policy == "Always"
    secrets = [s["name"] for s in chart.pod("sds-monitor")["imagePullSecrets"]]
    assert spark[f"{prefix}.pullSecrets"].split(",") == secrets
    done = helm(
        *("template", "sds-monitor", str(CHART), "--set", "image.pullSecrets=null"),
        *("--values", str(CHART / "ci" / EXECUTORS)),
    )
    assert done.returncode == 0, done.stderr
    assert f"{prefix}.pullPolicy" in done.stdout
    assert "ullSecrets" not in done.stdout


@pytest.mark.long
@FOR_HELM
def test_selectors_find_pods_and_services() -> None:
    """Of Services, policies and ServiceMonitors, of one part each."""
    chart = rendered(EVERYTHING)
    for name in PORTS:
        labels = chart.get("StatefulSet", name)["spec"]["template"]["metadata"]
        for kind, path in (
            ("Service", ("selector",)),
            ("NetworkPolicy", ("podSelector", "matchLabels")),
            ("ServiceMonitor", ("selector", "matchLabels")),
        ):
            selector = chart.get(kind, name)["spec"]
            for step in path:
                selector = selector[step]
            assert selector.items() <= labels["labels"].items()
            part = name.removeprefix("sds-monitor-").removeprefix("sds-")
            assert selector["app.kubernetes.io/component"] == part
        service = chart.get("Service", name)["metadata"]["labels"]
        monitored = chart.get("ServiceMonitor", name)["spec"]
        assert monitored["selector"]["matchLabels"].items() <= service.items()


@pytest.mark.long
@FOR_HELM
def test_series_have_the_labels_of_the_shipped_scrape_configuration() -> None:
    """So rules and dashboards fit; the instance stays the same after a restart."""
    path = ROOT / "dashboards/provisioning/prometheus.yml"
    shipped = yaml.safe_load(path.read_text("utf-8"))["scrape_configs"]
    jobs = {job["job_name"] for job in shipped if job["job_name"].startswith("sds-")}
    scraped = set()
    for name, port in PORTS.items():
        (endpoint,) = rendered(EVERYTHING).get("ServiceMonitor", name)["spec"][
            "endpoints"
        ]
        fixed = {r["targetLabel"]: r["replacement"] for r in endpoint["relabelings"]}
        assert fixed["instance"] == f"{name}:{port}"
        assert endpoint["scheme"] == "https"
        assert endpoint["authorization"]["credentials"]["key"] == "token"
        scraped.add(fixed["job"])
    assert scraped == jobs


def jobs_of(release: str, *given: str) -> list[str]:
    """Return the jobs of all parts of a release."""
    values = ("--values", str(CHART / "ci" / EVERYTHING), *given)
    done = helm("template", release, str(CHART), *values)
    assert done.returncode == 0, done.stderr
    monitors = [
        described
        for described in yaml.safe_load_all(done.stdout)
        if described["kind"] == "ServiceMonitor"
    ]
    assert len(monitors) == len(PORTS)
    return [
        relabeling["replacement"]
        for monitor in monitors
        for endpoint in monitor["spec"]["endpoints"]
        for relabeling in endpoint["relabelings"]
        if relabeling["targetLabel"] == "job"
    ]


@pytest.mark.long
@FOR_HELM
def test_each_release_has_jobs_of_its_own() -> None:
    """In one job, nothing would notice that one of two monitors is gone."""
    releases = ("sds-monitor", "sds-monitor-east", "east", "west", "x" * 53)
    jobs = [job for release in releases for job in jobs_of(release)]
    # In two namespaces, releases may have the same name.
    jobs += jobs_of("sds-monitor", "--set", "serviceMonitor.jobPrefix=north")
    assert jobs[-3:] == ["north-audit", "north-mirror", "north-monitor"]
    assert len(set(jobs)) == len(jobs) == 6 * len(PORTS)


@pytest.mark.long
@pytest.mark.needs("helm", "promtool")
def test_rules_and_dashboards_are_those_of_the_repository(tmp_path: Path) -> None:
    """With the addresses of the installation; promtool accepts the rules."""
    chart = rendered(EVERYTHING)
    for path, text in files(LINKS).items():
        name = f"sds-monitor-{path.stem}"
        if path.suffix == ".yml":
            spec = chart.get("PrometheusRule", name)["spec"]
            assert spec == yaml.safe_load(text)
            (tmp_path / path.name).write_text(yaml.safe_dump(spec))
            done = subprocess.run(
                ["promtool", "check", "rules", tmp_path / path.name],
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
        else:
            (shown,) = chart.get("ConfigMap", name)["data"].values()
            assert shown.strip() == text.strip()
    assert len(chart.names("PrometheusRule")) == 2
    assert "localhost" not in chart.text


def test_page_says_what_was_checked() -> None:
    """Before anything else, and that no cluster ran it; images have this version."""
    page = PAGE.read_text("utf-8")
    first = page.split("\n## ")[0]
    assert f"the schemas of Kubernetes {KUBERNETES} " in first
    assert "never run on a cluster" in first
    assert set(re.findall(r"sds-monitor(?:-spark)?:([\d.]+)", page)) == {version()}


@pytest.mark.long
@FOR_HELM
@pytest.mark.parametrize("block", BLOCKS)
def test_values_on_the_pages_are_accepted(block: str, tmp_path: Path) -> None:
    """Each of its examples."""
    (tmp_path / "values.yaml").write_text(textwrap.dedent(block))
    given = ("--values", str(tmp_path / "values.yaml"))
    done = helm("template", "sds-monitor", str(CHART), *given)
    assert done.returncode == 0, done.stderr
