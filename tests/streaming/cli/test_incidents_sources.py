"""Where ``sds-monitor incidents`` reads: a report, a history or a monitor's API.

The filters, and the exit codes for wrong use and unavailable sources.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from connectors.history.parquet import ParquetHistory
from connectors.history.schema import CHANNEL_MINUTES, NumberedMinute, minute_row
from connectors.web.app import create_app
from connectors.web.sources import Sources
from sds_core.observer.incidents import ChannelIncident, IncidentQuery, incident_object
from sds_core.observer.report import build_report
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import DEFAULTS
from tests.support.cli.command import sds_monitor
from tests.support.cli.incidents import (
    ALL,
    DELIVERED_LATE,
    LOST,
    NOBODY_SPOKE,
    MakeReport,
    invoke,
)
from tests.support.snapshots import snapshot_of
from tests.support.web.stored import stored

NESTED = '{"x":' + "[" * 10_000 + "]" * 10_000 + "}"


def app_of(
    find: Callable[[IncidentQuery], Sequence[ChannelIncident]],
    primed: bool = True,
    channels: Sequence[str] = (),
) -> Starlette:
    """A monitor's application, of which incidents and channels are asked."""
    totals = {channel: ChannelTotals() for channel in channels}
    snapshot = snapshot_of(primed=primed, channels=totals)
    sources = Sources(lambda: snapshot, stored(find_incidents=find), Path())
    return create_app(sources, CollectorRegistry())


def ids(result: Result) -> list[str]:
    """Message ids of JSON lines."""
    return [json.loads(line)["message_id"] for line in result.stdout.splitlines()]


def test_name_from_the_api_is_printed(serve: Callable[[ASGIApp], str]) -> None:
    """The monitor has its own channel table."""
    one = {**incident_object(LOST), "channel_name": "Town hall"}
    answer = json.dumps({"incidents": [one], "more": False})
    route = Route("/api/v1/incidents", lambda _: PlainTextResponse(answer))
    result = invoke("--api", serve(Starlette(routes=[route])))
    assert "; channel town; channel name Town hall; " in result.stdout


def test_causes_from_the_api_are_printed(serve: Callable[[ASGIApp], str]) -> None:
    """A monitor up to 0.12 gives none."""
    cause = {"kind": "new", "sentence": "it is the\nweather", "evidence": {}}
    content = {
        "incidents": [incident_object(LOST)],
        "more": False,
        "causes": {"town": [cause]},
    }
    answer = json.dumps(content)
    route = Route("/api/v1/incidents", lambda _: PlainTextResponse(answer))
    result = invoke("--api", serve(Starlette(routes=[route])))
    last = result.stdout.splitlines()[-1]
    assert last == "likely cause; channel town; it is the\\nweather"


_REACHED = "1 message reached nobody but its sender since"
_SEEN = "1 message since 2026-08-09T12:03:10.123Z was seen at nobody but"


@pytest.mark.parametrize(
    ("after_ms", "horizon_ms", "begin"),
    [
        (3_600_000, 3_600_000, _REACHED),
        (3_600_001, 3_600_000, _SEEN),
        (3_600_001, 3_600_001, _REACHED),
    ],
)
def test_clock_of_the_monitor_says_which_messages_are_followed(
    serve: Callable[[ASGIApp], str], after_ms: int, horizon_ms: int, begin: str
) -> None:
    """The monitor may read records of the past, and have a horizon of its own."""
    clock_ms = LOST.incident.since_ms + after_ms
    observer = replace(DEFAULTS, horizon_ms=horizon_ms)
    snapshot = snapshot_of(primed=True, clock_ms=clock_ms, observer=observer)
    found = stored(find_incidents=lambda _: [LOST])
    sources = Sources(lambda: snapshot, found, Path())
    url = serve(create_app(sources, CollectorRegistry()))
    result = invoke("--api", url, "--by", "participant")
    assert result.stdout.startswith(begin)


def test_settings_of_another_release_are_left_out(tmp_path: Path) -> None:
    """Also one that has the name of something else here."""
    path = tmp_path / "report.json"
    observer = {"repair_window_ms": 1_000, "__class__": 1, "later": 2}
    window = {"last_event": 5}
    content = {"schema": 1, "observer": observer, "window": window}
    path.write_text(json.dumps({**content, "channels": {}, "incidents": []}))
    assert invoke("--from-report", path).exit_code == 0


SELECTIONS: list[tuple[list[str], list[ChannelIncident]]] = [
    (["--channel", "town"], [LOST, NOBODY_SPOKE]),
    (["--standing"], [LOST, NOBODY_SPOKE]),
    (["--since", "2026-08-09T12:06:40Z"], [LOST, DELIVERED_LATE, NOBODY_SPOKE]),
    (["--since", "1786277200001"], [LOST, NOBODY_SPOKE]),
    (["--channel", "village", "--standing"], []),
]


@pytest.mark.parametrize(("flags", "expected"), SELECTIONS)
def test_flags_filter_a_report(
    report: MakeReport, flags: list[str], expected: list[ChannelIncident]
) -> None:
    """By channel, time of finding and state; no match is exit code 0."""
    result = invoke("--from-report", str(report(ALL)), "--json", *flags)
    assert ids(result) == [one.incident.message_id for one in expected]
    assert result.exit_code == (1 if expected else 0)


@pytest.mark.parametrize(("flags", "expected"), [([], ALL), *SELECTIONS])
def test_history_is_listed_as_a_report_is(
    report: MakeReport,
    history: Path,
    flags: list[str],
    expected: list[ChannelIncident],
) -> None:
    """With the same words and order; an empty list is exit code 0."""
    for form in ([], ["--json"]):
        read = invoke("--from-report", str(report(ALL)), *form, *flags)
        found = invoke("--history", str(history), *form, *flags)
        assert found.stdout == read.stdout
        assert found.exit_code == (1 if expected else 0)


def test_unknown_channel_is_wrong_use(
    report: MakeReport, history: Path, serve: Callable[[ASGIApp], str]
) -> None:
    """The error suggests the channel that was meant, instead of "no incidents"."""
    url = serve(app_of(lambda query: [], channels=("town",)))
    sources = (("--from-report", report(ALL)), ("--history", history), ("--api", url))
    for place, source in sources:
        result = invoke(place, str(source), "--channel", "twon")
        assert result.exit_code == 2, result.output
        assert "no such channel: 'twon' (did you mean 'town'?)" in result.stderr


def test_known_channel_without_incidents_is_no_error(
    tmp_path: Path, serve: Callable[[ASGIApp], str]
) -> None:
    """A report and a monitor know it by its figures, a history by its minutes."""
    snapshot = snapshot_of(channels={"calm": ChannelTotals()})
    path = tmp_path / "report.json"
    path.write_text(json.dumps(build_report(snapshot, 0, {}, [])))
    history = tmp_path / "history"
    minute = minute_row(NumberedMinute(1, "calm", 60_000, ChannelTotals()))
    ParquetHistory(history).write(CHANNEL_MINUTES, [minute])
    url = serve(app_of(lambda query: [], channels=("calm",)))
    for place, source in (
        ("--from-report", path),
        ("--history", history),
        ("--api", url),
    ):
        result = invoke(place, str(source), "--channel", "calm")
        assert (result.exit_code, result.stdout) == (0, "no incidents\n")


def test_unreadable_history_is_wrong_use(history: Path, tmp_path: Path) -> None:
    """One line with the directory or file."""
    done = sds_monitor("incidents", "--history", str(tmp_path / "nowhere"))
    assert done.returncode == 2
    assert f"no history was found in {tmp_path / 'nowhere'}" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    file = next(history.rglob("*.parquet"))
    file.write_text("no table")
    result = invoke("--history", str(history))
    assert result.exit_code == 2
    assert f"--history: {file} cannot be read" in result.stderr


def test_flags_are_passed_on_to_the_api(serve: Callable[[ASGIApp], str]) -> None:
    """The monitor filters; absent flags are not sent."""
    asked: list[IncidentQuery] = []

    def find(query: IncidentQuery) -> list[ChannelIncident]:
        asked.append(query)
        return ALL

    url = serve(app_of(find))
    result = invoke("--api", url, "--json")
    assert ids(result) == [one.incident.message_id for one in ALL]
    assert result.exit_code == 1
    invoke("--api", f"{url}/", "--channel", "a&b", "--since", "7", "--standing")
    limit = asked[0].limit
    assert asked == [
        IncidentQuery(limit=limit),
        IncidentQuery("a&b", None, 7, True, limit),
    ]


def test_truncated_answer_is_reported(
    serve: Callable[[ASGIApp], str], caplog: pytest.LogCaptureFixture
) -> None:
    """The log says how to get the others."""
    app = app_of(lambda query: [LOST] * 1_001)
    result = invoke("--api", serve(app), "--json")
    assert len(result.stdout.splitlines()) == 1_000
    assert "only the 1,000 latest incidents are shown" in caplog.text


@pytest.mark.parametrize("many", [1_000, 1_001, 2_500])
def test_all_pages_of_the_monitor_are_read(
    serve: Callable[[ASGIApp], str], caplog: pytest.LogCaptureFixture, many: int
) -> None:
    """A monitor's page has at most 1,000 incidents."""
    known = [
        LOST._replace(incident=msgspec.structs.replace(LOST.incident, message_id=name))
        for name in sorted(f"m{number}" for number in range(many))
    ]

    def find(query: IncidentQuery) -> list[ChannelIncident]:
        after = "" if query.after is None else query.after.message_id
        later = [one for one in known if one.incident.message_id > after]
        return later[: query.limit]

    url = serve(app_of(find))
    assert len(set(ids(invoke("--api", url, "--json")))) == many
    result = invoke("--api", url, "--by", "participant", "--json")
    lacks = [json.loads(line) for line in result.stdout.splitlines()]
    assert {one["messages"] for one in lacks} == {many}
    assert not [one for one in caplog.records if one.name == "sds-monitor"]


def test_no_incidents_is_exit_code_0(
    report: MakeReport, serve: Callable[[ASGIApp], str]
) -> None:
    """The text says so; JSON has no lines."""
    path = report([])
    result = invoke("--from-report", str(path))
    assert (result.exit_code, result.stdout) == (0, "no incidents\n")
    result = invoke("--from-report", str(path), "--json")
    assert (result.exit_code, result.stdout) == (0, "")
    app = app_of(lambda query: [])
    assert invoke("--api", serve(app)).exit_code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not a report of sds-monitor"),
        ("[]", "is not a report of sds-monitor"),
        ('{"incidents": [{}]}', "is not a report of sds-monitor"),
        (NESTED, "is not a report of sds-monitor"),
        ("{}", "was written without --report-detail"),
    ],
)
def test_report_without_incidents_field_is_wrong_use(
    tmp_path: Path, text: str | None, said: str
) -> None:
    """One line says what to do."""
    path = tmp_path / "report.json"
    if text is not None:
        path.write_text(text)
    done = sds_monitor("incidents", "--from-report", str(path))
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_report_without_detail_differs_from_one_without_incidents(
    report: MakeReport,
) -> None:
    """As `build_report` writes them."""
    assert invoke("--from-report", str(report(None))).exit_code == 2


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ["--from-report", "r.json", "--api", "http://x"],
            "one of --from-report, --api",
        ),
        (["--history", "h", "--api", "http://x"], "one of --from-report, --api"),
        (["--api", "127.0.0.1:9108"], "give a URL such as http://127.0.0.1:9108"),
        (["--api", "http://[::"], "give a URL such as http://127.0.0.1:9108"),
        (["--since", "soon"], "'soon' is not a valid time: use a time such as"),
        (["--since", "9" * 5_000], "is not a valid time: use a time such as"),
        (
            ["--since", "0001-01-01"],
            "'0001-01-01' is not a valid time: use a time such as",
        ),
    ],
)
def test_wrong_use_is_one_line_and_code_2(flags: list[str], said: str) -> None:
    """Exit code 2."""
    done = sds_monitor("incidents", *flags)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_former_name_of_from_report_works_with_a_warning(
    report: MakeReport, caplog: pytest.LogCaptureFixture
) -> None:
    """Until 2.0; the help text has only the new one."""
    path = str(report(ALL))
    new = invoke("--from-report", path, "--json")
    assert caplog.messages == []
    old = invoke("--report", path, "--json")
    assert (old.exit_code, old.stdout) == (new.exit_code, new.stdout)
    assert caplog.messages == ["--report was renamed: use --from-report"]
    assert "--report " not in invoke("--help").stdout


def test_report_that_a_job_writes_is_no_source(
    report: MakeReport, history: Path, tmp_path: Path
) -> None:
    """Its setting may be in the same environment or file, for `run`."""
    path = str(report([]))
    config = tmp_path / "monitor.toml"
    config.write_text(f'report = "{path}"\n[incidents]\nhistory = "{history}"\n')
    found = invoke("--config", str(config), "--json", SDS_MONITOR_REPORT=path)
    assert len(ids(found)) == len(ALL)


def test_source_on_the_command_line_precedes_others(
    report: MakeReport, history: Path, tmp_path: Path
) -> None:
    """Then environment, then file; two of one kind are refused."""
    config = tmp_path / "monitor.toml"
    config.write_text('[incidents]\napi = "http://127.0.0.1:1"\n')
    elsewhere = {
        "SDS_MONITOR_HISTORY": str(tmp_path / "nowhere"),
        "SDS_MONITOR_CONFIG": str(config),
    }
    found = invoke("--from-report", str(report(ALL)), "--json", **elsewhere)
    assert len(ids(found)) == len(ALL)
    elsewhere["SDS_MONITOR_HISTORY"] = str(history)
    assert len(ids(invoke("--json", **elsewhere))) == len(ALL)
    elsewhere["SDS_MONITOR_FROM_REPORT"] = str(report(ALL))
    found = invoke("--json", **elsewhere)
    assert found.exit_code == 2
    assert "give only one of --from-report, --api and --history" in found.stderr


def test_checkpoint_is_no_history(history: Path) -> None:
    """The error says where the history is, instead of "no incidents"."""
    found = invoke("--history", str(history.parent))
    assert found.exit_code == 2
    assert f"give {history}, which contains a history" in found.stderr


def test_monitor_that_does_not_answer_is_exit_code_3() -> None:
    """Nothing listens on port 1."""
    done = sds_monitor("incidents", "--api", "http://127.0.0.1:1")
    assert done.returncode == 3
    assert "no monitor answers at http://127.0.0.1:1" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("answer", ["404", "hello", "{}", NESTED])
def test_other_server_is_exit_code_3(
    serve: Callable[[ASGIApp], str], answer: str
) -> None:
    """Its answer does not mean "no incidents"."""
    routes: list[Any] = []
    if answer != "404":
        routes.append(Route("/api/v1/incidents", lambda _: PlainTextResponse(answer)))
    result = invoke("--api", serve(Starlette(routes=routes)))
    assert result.exit_code == 3
    assert "is it sds-monitor's?" in result.stderr


def test_nested_refusal_is_exit_code_3(serve: Callable[[ASGIApp], str]) -> None:
    """The text of the refusal cannot be read."""
    refusal = PlainTextResponse(NESTED, 400)
    app = Starlette(routes=[Route("/api/v1/incidents", lambda _: refusal)])
    result = invoke("--api", serve(app))
    assert result.exit_code == 3
    assert "answers 400: is it sds-monitor's?" in result.stderr


def test_starting_monitor_is_an_error(
    serve: Callable[[ASGIApp], str],
) -> None:
    """Its own message is printed."""
    result = invoke("--api", serve(app_of(lambda query: [], primed=False)))
    assert result.exit_code == 3
    assert "answers 503: the monitor is starting" in result.stderr
