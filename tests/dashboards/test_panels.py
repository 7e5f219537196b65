"""The dashboards as Grafana gets them."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import Links
from dashboards.panels import dashboards
from dashboards.rules import alerts
from sds_core.metrics import MetricKind
from tests.support.dashboards.expressions import expressions, substitute
from tests.support.metrics import ALL_METRICS

MONITOR_URL = "https://sds.example"
RUNBOOKS = Links().runbook("")
BUILT = dashboards(Links(monitor_url=MONITOR_URL))
JSON: dict[str, dict[str, Any]] = {
    uid: json.loads(json.dumps(dashboard, cls=JSONEncoder))
    for uid, dashboard in BUILT.items()
}
EXPRESSIONS = [one for dashboard in BUILT.values() for one in expressions(dashboard)]
GRAFANAS_OWN = {"__rate_interval": "1m", "__range": "6h"}

every_dashboard = pytest.mark.parametrize("uid", JSON)


def panels(uid: str) -> list[dict[str, Any]]:
    """The panels of a dashboard without the headings."""
    return [p for p in JSON[uid]["panels"] if p["type"] != "row"]


def variables(uid: str) -> dict[str, dict[str, Any]]:
    """The variables of a dashboard by name."""
    return {v["name"]: v for v in JSON[uid]["templating"]["list"]}


def data_links(value: object) -> list[str]:
    """The URLs of all links from values, wherever they stand."""
    if isinstance(value, dict):
        if isinstance(value.get("url"), str):
            return [value["url"]]
        return [url for one in value.values() for url in data_links(one)]
    if isinstance(value, list):
        return [url for one in value for url in data_links(one)]
    return []


@every_dashboard
def test_every_panel_has_title_description_and_unit(uid: str) -> None:
    """Titles are unique."""
    for panel in panels(uid):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
    titles = [panel["title"] for panel in panels(uid)]
    assert len(titles) == len(set(titles))


def test_table_of_alerts_shows_every_alert() -> None:
    """Also those on MVDS groups."""
    (query,) = [one.expr for one in EXPRESSIONS if one.panel == "Alerts that fire"]
    (names,) = re.findall(r'alertname=~"([^"]+)"', query)
    assert [one.name for one in alerts() if not re.fullmatch(names, one.name)] == []


@every_dashboard
def test_every_panel_queries_the_chosen_data_source(uid: str) -> None:
    """No panel is without a query."""
    for panel in panels(uid):
        assert panel["targets"], panel["title"]
        for asking in (panel, *panel["targets"]):
            assert asking["datasource"]["uid"] == "${datasource}"
    assert variables(uid)["datasource"]["query"] == "prometheus"


@every_dashboard
def test_panels_have_distinct_ids_and_places(uid: str) -> None:
    """On a grid of 24 columns without holes in a row."""
    ids = [panel["id"] for panel in JSON[uid]["panels"]]
    assert len(ids) == len(set(ids))
    taken = [
        (column, row)
        for panel in JSON[uid]["panels"]
        for place in [panel["gridPos"]]
        for column in range(place["x"], place["x"] + place["w"])
        for row in range(place["y"], place["y"] + place["h"])
    ]
    height = max(row for _, row in taken) + 1
    assert sorted(taken) == sorted(itertools.product(range(24), range(height)))


@every_dashboard
def test_queries_of_a_panel_have_distinct_letters(uid: str) -> None:
    """Otherwise Grafana keeps only one of them."""
    for panel in panels(uid):
        letters = [target["refId"] for target in panel["targets"]]
        assert len(letters) == len(set(letters)), panel["title"]


@every_dashboard
def test_legends_name_labels_that_the_series_have(uid: str) -> None:
    """Otherwise the legend would be empty."""
    for panel in panels(uid):
        for target in panel["targets"]:
            for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                grouped = r"(by|group_left) \([^)]*\b" + label + r"\b"
                assert re.search(grouped, target["expr"]), panel["title"]


@every_dashboard
def test_dashboard_has_the_variables_that_it_uses(uid: str) -> None:
    """In queries of panels and of variables, and in links."""
    text = json.dumps(JSON[uid])
    used = set(re.findall(r"\$(?!_)(\w+)|\$\{(?!_)(\w+)", text))
    assert {a or b for a, b in used} <= variables(uid).keys()


@every_dashboard
def test_links_lead_to_pages_that_exist(uid: str) -> None:
    """Dashboards by uid or tag, pages of the monitor and runbooks by their URLs."""
    assert variables(uid)["monitor_url"]["current"]["value"] == MONITOR_URL
    pages = {"/", "/channel", "/incidents", "/taps", "/monitor", "/views"}
    tags = set()
    for link in JSON[uid]["links"]:
        tags |= set(link["tags"])
        assert "placement" not in link, "it would be hidden in a menu"
    assert all(tags <= set(one["tags"]) for one in JSON.values())
    for url in data_links(JSON[uid]["panels"]) + data_links(JSON[uid]["links"]):
        path = url.split("?")[0]
        if path.startswith("/d/"):
            assert path.removeprefix("/d/") in JSON
        elif path.startswith(RUNBOOKS):
            assert path == f"{RUNBOOKS}${{__data.fields.alertname:percentencode}}"
        elif url:
            assert path.startswith("${monitor_url}/")
            assert "/" + path.split("/")[1] in pages


@pytest.mark.needs("promtool")
def test_every_expression_is_valid_promql(tmp_path: Path) -> None:
    """Prometheus parses it after variables are replaced."""
    values = GRAFANAS_OWN | {"job": "sds-monitor", "channel": "a"}
    rules = [
        {"record": f"expression:{n}", "expr": substitute(one.expr, values)}
        for n, one in enumerate(EXPRESSIONS)
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
    check = subprocess.run(
        ["promtool", "check", "rules", str(file)], capture_output=True, text=True
    )
    assert check.returncode == 0, check.stderr


def test_every_metric_is_on_a_dashboard() -> None:
    """Queries of variables count as well."""
    text = json.dumps(JSON)
    names = {
        name.removesuffix("_bucket") for name in re.findall(r"\b(?:sds|mvds)_\w+", text)
    }
    scraped = [m.name + "_info" * (m.kind is MetricKind.INFO) for m in ALL_METRICS]
    assert [name for name in scraped if name not in names] == []


def test_variable_without_a_value_is_refused() -> None:
    """It must not be sent to Prometheus unchanged."""
    assert substitute('a{b="$b"}[${__range}]', {"b": "x", "__range": "1h"}) == (
        'a{b="x"}[1h]'
    )
    with pytest.raises(KeyError, match="c"):
        substitute('a{b="$c"}', {"b": "x"})
