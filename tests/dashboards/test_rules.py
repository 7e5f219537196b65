"""Rule files: accepted by Prometheus, scaled completely, consistent."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards import Links
from dashboards.rules import alerts, rule_files
from dashboards.rules.alert import Alert, Subject

ROOT = Path(__file__).parents[2]
LINKS = Links(
    "https://sds.example", "https://grafana.example", "https://docs.example/runbooks"
)

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_RECORDED = re.compile(r"\b(?:channel|job):\w+:\w+")


def rules(speed: float = 1.0) -> Iterator[dict[str, Any]]:
    """All rules of both files, in order."""
    for content in rule_files(LINKS, speed).values():
        for group in content["groups"]:
            yield from group["rules"]


def durations(speed: float) -> Iterator[float]:
    """Those of all rules and groups in order, in seconds."""
    for content in rule_files(LINKS, speed).values():
        for number, unit in re.findall(
            r"(?:\[|offset |interval: |for: )(\d+)(ms|s|m|h|d)\b",
            yaml.safe_dump(content, sort_keys=False, width=100_000),
        ):
            yield int(number) * _SECONDS[unit]


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("speed", [1.0, 60.0, 7.0])
def test_prometheus_accepts_the_rules(speed: float, tmp_path: Path) -> None:
    """At normal speed and at others."""
    for name, content in rule_files(LINKS, speed).items():
        file = tmp_path / f"{name}.yml"
        file.write_text(yaml.safe_dump(content))
        done = subprocess.run(
            ["promtool", "check", "rules", file], capture_output=True, text=True
        )
        found = sum(len(group["rules"]) for group in content["groups"])
        assert done.returncode == 0, done.stderr
        assert f"SUCCESS: {found} rules found" in done.stdout


def test_faster_traffic_shortens_every_duration() -> None:
    """Ranges, holds and intervals; names of windows do not change."""
    fast = list(durations(60))
    assert [60 * seconds for seconds in fast] == pytest.approx(list(durations(1)))
    assert min(fast) == 1
    texts = re.compile(r"\[\w+\]|offset \w+")
    assert [texts.sub("", rule["expr"]) for rule in rules(60)] == [
        texts.sub("", rule["expr"]) for rule in rules()
    ]


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_invalid_speed_is_refused(speed: float) -> None:
    """The message has the given value and a valid one."""
    with pytest.raises(ValueError, match=f"speed {speed:g}: give a number above 0"):
        rule_files(LINKS, speed)


def test_recorded_names_are_recorded_before_they_are_used() -> None:
    """Rules of a group run in order; a later one lags by an interval."""
    known: set[str] = set()
    for rule in rules():
        assert set(_RECORDED.findall(rule["expr"])) <= known
        known.add(rule.get("record", ""))


def test_cases_are_evaluated_as_often_as_slices_are_recorded() -> None:
    """Otherwise sums of slices would differ from production."""
    (group,) = rule_files(LINKS)["recording"]["groups"]
    cases = (ROOT / "tests/dashboards/promtool").glob("*.yml")
    settings = [yaml.safe_load(file.read_text()) for file in cases]
    intervals = {
        one["evaluation_interval"]
        for one in settings
        if any(name.endswith("/recording.yml") for name in one["rule_files"])
    }
    assert intervals == {group["interval"]}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_alert_says_what_and_where(alert: Alert) -> None:
    """A summary without figures, a description, and links to existing pages."""
    (rule,) = (
        rule
        for rule in rules()
        if rule.get("alert") == alert.name
        and rule["labels"] == {"severity": alert.severity, **alert.labels}
    )
    notes = rule["annotations"]
    assert re.fullmatch(r"[A-Z][^{}\d]+\.", notes["summary"])
    assert notes["description"].endswith(".")
    runbook, _, channel = notes["runbook_url"].partition("{{ if")
    assert runbook == f"https://docs.example/runbooks/{alert.name}"
    is_of_channel = alert.subject in (Subject.CHANNEL, Subject.GROUP)
    assert ("?channel={{ $labels.channel | urlquery }}" in channel) is is_of_channel
    assert (ROOT / f"dashboards/generated/grafana/{alert.dashboard}.json").exists()
    url = f"https://grafana.example/d/{alert.dashboard}"
    assert notes["dashboard_url"].startswith(url)


def test_alerts_on_channels_and_groups_use_names_and_muting() -> None:
    """Each of them."""
    for alert in alerts():
        views = {Subject.CHANNEL: "sds_channel", Subject.GROUP: "mvds_group"}
        of = views.get(alert.subject, "")
        for one in views.values():
            assert (f"{one}_info" in alert.expression) == (one == of)
        assert ("{{ $labels.name }}" in alert.description) == bool(of)
        if of:
            assert f"{of}_muted_until_timestamp_seconds" in alert.expression
