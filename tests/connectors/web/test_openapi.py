"""The API's description: every route has one, and every answer follows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from connectors.web.openapi import PATH
from connectors.web.operations import Operation
from connectors.web.side_apps import create_audit_app
from docs import make_api
from sds_core.audit.figures import AuditFigures
from sds_core.audit.result import AuditedMessage, AuditResult
from sds_core.observer.excused import Excuse, ExcusedFindings
from sds_core.observer.mvds.kind import SHARD_VIEWS
from sds_core.observer.mvds.totals import GroupTotals
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.observer.verdict import Verdict
from tests.support.snapshots import snapshot_of, with_channels, with_others

EXAMPLES = 4
"""Requests of each kind for each operation."""

GROUP = "00000000000000aa"

ADDRESSES = [
    "channels",
    "channels?limit=1",
    "channels?id=/waku/1",
    "channels/%2Fwaku%2F1",
    "incidents",
    "incidents?limit=1&kind=lost&standing=true&since=1",
    "minutes?channel=/waku/1&hours=1",
    "verdicts?channel=/waku/1&limit=2",
    "participants?channel=/waku/1",
    "participants?channel=muted",
    "planning?limit=1",
    "planning?channel=/waku/1",
    "taps",
    "trace?channel=town&message=m1",
    "views/sds?limit=1",
    "views/sds/hours?id=/waku/1&days=1",
    "views/sds/incidents",
    "views/sds/minutes?id=/waku/1&hours=24",
    "views/sds/planning?id=/waku/1",
    "views/sds/trace?id=town&message=m1",
    "views/sds/verdicts?id=/waku/1&from=0",
    "views/mvds",
    f"views/mvds/hours?id={GROUP}",
    "views/mvds/planning",
    f"views/mvds/verdicts?id={GROUP}",
]
"""At least one of each operation that answers with JSON."""


@pytest.fixture
def followed(busy: Any) -> Any:
    """A stage with something of everything, and a group of MVDS."""
    totals = GroupTotals(verdict=Verdict.OK, verdict_reason="ok", first_event_ms=1)
    views = Views(SHARD_VIEWS, {GROUP: totals})
    busy.snapshot = with_others(busy.snapshot, {"mvds": views})
    return busy


@pytest.fixture
def described(client: httpx.Client) -> dict[str, Any]:
    """The description as it is served."""
    document: dict[str, Any] = client.get(PATH).json()
    return document


def closed(schema: Any) -> Any:
    """A schema that also refuses keys that it does not describe."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(one) for name, one in schema.items()}
    if isinstance(schema.get("properties"), dict):
        found["additionalProperties"] = False
    return found


def faults(document: dict[str, Any], route: str, answer: httpx.Response) -> list[str]:
    """What of an answer does not follow the description of its route."""
    response = document["paths"][route]["get"]["responses"][str(answer.status_code)]
    schema = response["content"]["application/json"]["schema"]
    whole = closed({**schema, "components": document["components"]})
    import jsonschema  # Two seconds, at the collection in each worker.

    validator = jsonschema.Draft202012Validator(whole)
    return [error.message for error in validator.iter_errors(answer.json())]


def route_of(app: Starlette, address: str) -> str:
    """The path in the description of the operation that answers an address."""
    scope = {"type": "http", "method": "GET", "path": httpx.URL(address).path}
    for one in app.routes:
        if isinstance(one, Operation) and one.matches(scope)[1]:
            return one.path_format
    raise AssertionError(address)


def test_description_is_valid(described: dict[str, Any]) -> None:
    """By the validator of the specification; it describes itself, too."""
    from openapi_spec_validator import validate

    validate(described)
    assert PATH in described["paths"]


def test_every_route_but_pages_has_a_description(stage: Any) -> None:
    """The routing itself is what is described."""

    def outside(routes: list[BaseRoute]) -> Iterator[str]:
        for one in routes:
            if not isinstance(one, Operation):
                assert isinstance(one, Route) or one.path == "/static"
                yield one.path

    assert not [path for path in outside(stage.app.routes) if "api" in path]
    paths = {one.path_format for one in stage.app.routes if isinstance(one, Operation)}
    assert {"/metrics", "/healthz", "/readyz"} < paths


@pytest.mark.usefixtures("followed")
def test_every_operation_is_called(stage: Any) -> None:
    """By the test below."""
    called = {route_of(stage.app, f"/api/v1/{address}") for address in ADDRESSES}
    operations = [one for one in stage.app.routes if isinstance(one, Operation)]
    every = {one.path_format for one in operations if one.path.startswith("/api/")}
    assert every - called == {PATH}


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.usefixtures("followed")
def test_answer_follows_the_description(
    client: httpx.Client, stage: Any, described: dict[str, Any], address: str
) -> None:
    """With no key that it does not have."""
    path = f"/api/v1/{address}"
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert faults(described, route_of(stage.app, path), answer) == []


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("taps?limit=x", 400),
        ("minutes?channel=nobody", 404),
        ("views/none", 404),
        ("incidents", 503),
    ],
)
def test_error_follows_the_description(
    client: httpx.Client,
    stage: Any,
    described: dict[str, Any],
    address: str,
    status: int,
) -> None:
    """Its reason is one line."""
    from jsonschema import validate

    if status == 503:
        stage.snapshot = snapshot_of()
    path = f"/api/v1/{address}"
    answer = client.get(path)
    assert answer.status_code == status
    error = described["components"]["schemas"]["ErrorObject"]
    validate(answer.json(), error)
    route = route_of(stage.app, path)
    assert str(status) in described["paths"][route]["get"]["responses"]


def test_undescribed_key_would_be_noticed(
    client: httpx.Client, stage: Any, described: dict[str, Any]
) -> None:
    """The check above can fail."""
    answer = client.get("/api/v1/taps")
    more = httpx.Response(200, json={**answer.json(), "more": 1})
    assert len(faults(described, "/api/v1/taps", more)) == 1


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.usefixtures("followed")
def test_unknown_parameter_is_refused_in_one_line(
    client: httpx.Client, address: str
) -> None:
    """With those that exist."""
    sign = "&" if "?" in address else "?"
    answer = client.get(f"/api/v1/{address}{sign}limits=5")
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error.startswith("no parameter has the name limits: ")
    assert "\n" not in error


def test_scrape_with_an_unknown_parameter_is_answered(client: httpx.Client) -> None:
    """Configurations of Prometheus may have parameters for other exporters."""
    assert client.get("/metrics?format=prometheus").status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/planning", "/api/v1/views/sds/planning"])
@pytest.mark.usefixtures("followed")
def test_forecasts_come_in_pages(client: httpx.Client, path: str) -> None:
    """Each once, by name."""
    whole = [one["id"] for one in client.get(path).json()["channels"]]
    found, after = [], {}
    while True:
        answer = client.get(path, params={"limit": 1, **after}).json()
        found += [one["id"] for one in answer["channels"]]
        if answer["next"] is None:
            break
        after = {"after": answer["next"]}
    assert found == whole == sorted(whole)
    assert len(found) == 3


def test_held_back_alerts_of_the_list_are_limited(
    client: httpx.Client, stage: Any, snapshot: Callable[..., Snapshot]
) -> None:
    """Each channel has its own as well."""
    lost = ExcusedFindings("lost", Excuse("tap_hole", 5, 9), 7, 0, True, "SdsLost")
    names = [f"c{n}" for n in range(1_001)]
    stage.snapshot = with_channels(
        snapshot({name: ChannelTotals() for name in names}),
        excused={name: (lost,) for name in names},
    )
    assert len(client.get("/api/v1/channels?limit=0").json()["held_back"]) == 1_000


def test_audit_describes_its_result(client: httpx.Client, switch: Any) -> None:
    """Its answers follow its own description, before and after the first result."""
    from openapi_spec_validator import validate

    figures = AuditFigures()
    switch.app = create_audit_app(figures)
    document = client.get(PATH).json()
    validate(document)
    path = "/api/v1/audit"
    assert faults(document, path, client.get(path)) == []
    message = AuditedMessage(5_000_000, b"m", channel="town")
    figures.ended(AuditResult("b", 0, 9, 1, 2, [message], [], mirror_begin_ms=7), 9)
    answer = client.get(path)
    assert answer.json()["audit"]["newest_missing_ms"] == {"town": 5}
    assert faults(document, path, answer) == []


def test_page_is_up_to_date() -> None:
    """After a change of the API run ``python -m docs.make_api``."""
    assert make_api.PAGE.read_text(encoding="utf-8") == make_api.page()


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_requests_made_of_the_description_are_answered_as_described(
    followed: Any, mode: str
) -> None:
    """Such that it allows, and others; none is an error of the server."""
    import schemathesis

    described = schemathesis.openapi.from_asgi(PATH, followed.app)
    answered: Counter[int] = Counter()
    for found in described.get_all_operations():
        operation = found.ok()
        if mode == "negative" and not operation.query.get("limit"):
            # Any text is allowed for most parameters.
            continue

        @settings(max_examples=EXAMPLES, database=None, derandomize=True)
        @given(operation.as_strategy(schemathesis.GenerationMode(mode)))
        def check(case: schemathesis.Case) -> None:
            # No schema says which values other answers have as their `next`.
            case.query.pop("after", None)
            answered[case.call_and_validate().status_code] += 1

        check()
    assert answered[{"positive": 200, "negative": 400}[mode]] > 5
