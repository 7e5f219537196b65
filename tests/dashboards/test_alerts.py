"""Each alert fires only when it must, and has a runbook."""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from connectors.web.runbook_text import DURATION
from connectors.web.words import duration
from dashboards.rules import alerts
from dashboards.rules.alert import Severity
from docs import make_alerts
from sds_core.observer.settings import DEFAULTS
from tests.support.dashboards.simulated_alerts import simulated_alerts

ROOT = Path(__file__).parents[2]
CASES = sorted(Path(__file__).with_name("promtool").glob("*.yml"))
RUNBOOKS = ROOT / "dashboards/runbooks"
HEADINGS = [
    "What it means",
    "Find the cause",
    "What to do",
    "Commands",
    "Does it continue?",
    "Who to involve",
    "An example",
]
NAMES = sorted({alert.name for alert in alerts()})


@pytest.mark.slow
@pytest.mark.needs("promtool")
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_alerts_fire_when_they_must_and_only_then(file: Path) -> None:
    """All cases of a file, with the committed rules."""
    # A third of its CPU time would be garbage collection.
    environment = os.environ | {"GOGC": "800"}
    done = subprocess.run(
        ["promtool", "test", "rules", file],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs("promtool")
@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("clean", set()),
        ("quiet", set()),
        ("tap-blind", {"SdsTapBlind"}),
        ("mvds-interactive", set()),
    ],
)
def test_healthy_network_fires_no_alert_on_channels(
    scenario: str, expected: set[str]
) -> None:
    """Nor does a quiet channel, a blind tap, or a group that loses a tenth."""
    fired = simulated_alerts(scenario, seed=1)
    assert {one.name for found in fired.values() for one in found} == expected


def test_every_alert_has_a_firing_and_a_silent_case() -> None:
    """For each severity; a case in which nothing fires yet is not silent."""
    firing = defaultdict(set)
    silent = set()
    for file in CASES:
        for group in yaml.safe_load(file.read_text())["tests"]:
            to_come: set[str] = set()
            for case in reversed(group.get("alert_rule_test", ())):
                name = case["alertname"]
                for one in case["exp_alerts"]:
                    firing[name].add(one["exp_labels"]["severity"])
                    to_come.add(name)
                if name not in to_come:
                    silent.add(name)
    severities = defaultdict(set)
    for alert in alerts():
        severities[alert.name].add(alert.severity.value)
    assert firing == severities
    assert set(NAMES) - silent == set()


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    """The file has the alert's name."""
    assert sorted(file.stem for file in RUNBOOKS.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_runbook_begins_with_severity_and_meaning(name: str) -> None:
    """As in the rules: the page that lists the runbooks reads this line.

    Then come the impact and how urgent it is, for each severity.
    """
    some = [alert for alert in alerts() if alert.name == name]
    severities = [one.value for one in Severity if one in {a.severity for a in some}]
    line = f"**Severity:** {', '.join(severities)}. {some[0].summary}"
    head, _, _ = (RUNBOOKS / f"{name}.md").read_text().partition("\n## ")
    _, first, impact, urgency = head.strip().split("\n\n")
    assert first == line
    assert impact.startswith("**Impact:** ")
    assert urgency.startswith("**Urgency:** ")
    if len(severities) > 1:
        assert all(f"`{one}`: " in impact + urgency for one in severities)


@pytest.mark.parametrize("name", NAMES)
def test_runbook_has_all_sections(name: str) -> None:
    """In order, each with text, and with a PromQL query."""
    title, *sections = re.split(
        r"^## ", (RUNBOOKS / f"{name}.md").read_text(), flags=re.MULTILINE
    )
    assert title.startswith(f"# {name}\n")
    parts = dict(section.split("\n", 1) for section in sections)
    assert list(parts) == HEADINGS
    assert all(text.strip() for text in parts.values())
    assert "```promql\n" in parts["Does it continue?"]


@pytest.mark.parametrize("name", NAMES)
def test_runbook_has_the_commands_of_each_supervisor(name: str) -> None:
    """In each block of the section, in this order, each with one line below it."""
    text = (RUNBOOKS / f"{name}.md").read_text()
    section = re.search(r"^## Commands\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    blocks = re.findall(r"```sh\n(.*?)```", section[1], re.DOTALL)
    assert blocks
    for block in blocks:
        lines = block.splitlines()
        assert lines[::2] == ["# systemd", "# Docker Compose", "# Kubernetes"]
        _, compose, kubectl = lines[1::2]
        assert compose.startswith("docker compose ")
        assert kubectl.startswith("kubectl ")


def test_durations_of_runbooks_are_the_defaults() -> None:
    """Those that name their setting: the monitor shows the configured duration."""
    shown = {
        (found[2], found[1])
        for file in RUNBOOKS.iterdir()
        for found in DURATION.finditer(file.read_text())
    }
    assert {name for name, _ in shown} >= {"gap_deadline_ms", "delivery_deadline_ms"}
    assert shown == {(name, duration(getattr(DEFAULTS, name))) for name, _ in shown}


@pytest.mark.needs("promtool")
def test_queries_of_runbooks_are_valid(tmp_path: Path) -> None:
    """Prometheus can parse each of them."""
    queries = [
        query
        for file in sorted(RUNBOOKS.iterdir())
        for query in re.findall(r"```promql\n(.*?)```", file.read_text(), re.DOTALL)
    ]
    group = {
        "name": "queries",
        "rules": [
            {"record": f"query:{number}:x", "expr": query}
            for number, query in enumerate(queries)
        ],
    }
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [group]}))
    done = subprocess.run(
        ["promtool", "check", "rules", file], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_examples_of_runbooks_agree_with_their_cases() -> None:
    """A runbook names its case; each line of the example is expected there."""
    example = re.compile(
        r"\*(.+)\* in `(tests/\S+\.yml)` expects .+:\n\n```text\n((?:.+\n)+?)```"
    )
    found = 0
    for runbook in sorted(RUNBOOKS.iterdir()):
        for name, file, lines in example.findall(runbook.read_text()):
            case = (ROOT / file).read_text()
            assert f"- name: {name}" in case
            for line in lines.splitlines():
                assert line.partition(": ")[2] in case
            found += 1
    assert found


def test_list_of_alerts_is_up_to_date() -> None:
    """After a change of alerts run ``python -m docs.make_alerts``."""
    assert make_alerts.PAGE.read_text(encoding="utf-8") == make_alerts.page()
