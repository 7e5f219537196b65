"""``sds-monitor incidents`` over a report, a monitor's API and a history."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from connectors.history.parquet import ParquetHistory
from connectors.history.schema import INCIDENTS, NumberedIncident, incident_row
from connectors.web.app import create_app
from connectors.web.server import WebServer
from connectors.web.sources import Sources
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    IncidentQuery,
    incident_object,
)
from sds_core.observer.report import build_report
from sds_core.observer.snapshot import Snapshot
from streaming.cli.incidents import command
from tests.support.cli.command import sds_monitor

LONG_ID = "0x" + "0123456789abcdef" * 4
HASH = bytes(range(32))

LOST = ChannelIncident(
    "town",
    Incident(
        IncidentKind.LOST,
        LONG_ID,
        "alice",
        since_ms=1_786_276_990_123,
        found_ms=1_786_277_290_123,
        lacking={"bob": 1_786_276_995_001, "carol": 1_786_276_996_000},
        named_by=["alice"],
        hint=b"\x02\xff",
    ),
    tap_hole=True,
)
DELIVERED_LATE = ChannelIncident(
    "village",
    Incident(
        IncidentKind.UNDELIVERED,
        "m2",
        "bob",
        since_ms=1_786_276_900_000,
        found_ms=1_786_277_200_000,
        ended_ms=1_786_277_600_000,
        waku_hash=HASH,
    ),
    tap_hole=False,
)
NOBODY_SPOKE = ChannelIncident(
    "town",
    Incident(
        IncidentKind.UNACKNOWLEDGED, "m3", "", 1_786_270_000_000, 1_786_270_120_000
    ),
    tap_hole=False,
)
ALL = [LOST, DELIVERED_LATE, NOBODY_SPOKE]
"""Found last first."""

MakeReport = Callable[..., Path]


@pytest.fixture
def report(tmp_path: Path) -> MakeReport:
    """Make a report with incidents; with None, one without detail."""

    def make(incidents: list[ChannelIncident] | None) -> Path:
        path = tmp_path / "report.json"
        document = build_report(Snapshot(), 0, {}, incidents)
        path.write_text(json.dumps(document, sort_keys=True))
        return path

    return make


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history of all of them."""
    directory = tmp_path / "history"
    rows = [incident_row(NumberedIncident(1, one)) for one in ALL]
    ParquetHistory(directory).write(INCIDENTS, rows)
    return directory


@pytest.fixture
def serve() -> Iterator[Callable[[ASGIApp], str]]:
    """Serve an application until the test's end; gives its URL."""
    servers: list[WebServer] = []

    def start(app: ASGIApp) -> str:
        server = WebServer(app, port=0)
        server.start()
        servers.append(server)
        return server.url

    yield start
    for server in servers:
        server.stop()


def app_of(
    find: Callable[[IncidentQuery], Sequence[ChannelIncident]], primed: bool = True
) -> Starlette:
    """A monitor's application, of which incidents alone are asked."""
    snapshot = Snapshot(primed=primed)
    sources = Sources(lambda: snapshot, find, lambda *_: [], Path())
    return create_app(sources, CollectorRegistry())


def invoke(*arguments: str, **environment: str) -> Result:
    """The command in this process; what it prints is no terminal's."""
    return CliRunner().invoke(command, arguments, env=environment)


def ids(result: Result) -> list[str]:
    """Message ids of JSON lines."""
    return [json.loads(line)["message_id"] for line in result.stdout.splitlines()]


def test_each_incident_is_one_plain_line(report: MakeReport) -> None:
    """With who lacks it, since when, complete id, hash and hint, and reason."""
    result = invoke("--report", str(report(ALL)))
    assert result.exit_code == 1
    lost, late, unacknowledged = result.stdout.splitlines()
    assert lost == (
        f"lost; message {LONG_ID}; channel town; sender alice; "
        "lacked by bob since 2026-08-09T12:03:15.001Z, "
        "carol since 2026-08-09T12:03:16.000Z; named by alice; "
        "since 2026-08-09T12:03:10.123Z; found 2026-08-09T12:08:10.123Z; "
        "retrieval hint 02ff; "
        "why named in a causal history by alice; for 300 s no tap saw it, and nobody "
        "but its sender showed to have it; "
        "note every tap had a hole meanwhile: it may be of the taps' making"
    )
    assert late.startswith("undelivered, ended 2026-08-09T12:13:20.000Z; message m2; ")
    assert f"Waku hash 0x{HASH.hex()}; " in late
    assert "lacked by" not in late
    assert unacknowledged.startswith(
        "unacknowledged; message m3; channel town; "
        "lacked by nobody that a filter shows; "
    )


def test_terminal_of_a_hundred_columns_has_complete_values(
    report: MakeReport,
) -> None:
    """One block per incident; no value is cut, and no line is too long."""
    result = invoke("--report", str(report(ALL)), FORCE_COLOR="1", COLUMNS="100")
    text = re.sub("\x1b[^m]*m", "", result.stdout)
    assert text != result.stdout
    assert max(map(len, text.splitlines())) <= 100
    for whole in (LONG_ID, "0x" + HASH.hex(), "bob since 2026-08-09T12:03:15.001Z"):
        assert whole in text
    (lost, *_), *_ = (block.splitlines() for block in text.split("\n\n"))
    assert lost.rstrip() == "lost"


def test_narrow_terminal_folds_an_id_and_cuts_nothing_off(report: MakeReport) -> None:
    """The parts of the lines make the whole id."""
    result = invoke("--report", str(report([LOST])), FORCE_COLOR="1", COLUMNS="50")
    text = re.sub("\x1b[^m]*m", "", result.stdout)
    assert max(map(len, text.splitlines())) <= 50
    assert LONG_ID in re.sub(r"\s", "", text)


def test_json_lines_are_the_objects_of_the_report(report: MakeReport) -> None:
    """The last found first."""
    path = report(ALL)
    result = invoke("--report", str(path), "--json")
    assert result.exit_code == 1
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert found == json.loads(path.read_text())["incidents"][::-1]


@pytest.fixture
def channels(tmp_path: Path) -> Path:
    """A channel table that names one of the two channels."""
    path = tmp_path / "channels.toml"
    path.write_text('[[channel]]\nmatch = "tow?"\nname = "Town hall"\n')
    return path


@pytest.mark.parametrize("place", ["--report", "--history"])
def test_named_channels_have_names_beside_their_ids(
    report: MakeReport, history: Path, channels: Path, place: str
) -> None:
    """In text and JSON."""
    source = report(ALL) if place == "--report" else history
    flags = (place, str(source), "--channels", str(channels))
    lost, late, unacknowledged = invoke(*flags).stdout.splitlines()
    for line in (lost, unacknowledged):
        assert "; channel town; channel name Town hall; " in line
    assert "channel name" not in late
    found = [json.loads(line) for line in invoke(*flags, "--json").stdout.splitlines()]
    names = [one.get("channel_name") for one in found]
    assert names == ["Town hall", None, "Town hall"]


def test_name_from_the_api_is_printed(serve: Callable[[ASGIApp], str]) -> None:
    """The monitor has its own channel table."""
    one = {**incident_object(LOST), "channel_name": "Town hall"}
    answer = json.dumps({"incidents": [one], "more": False})
    route = Route("/api/v1/incidents", lambda _: PlainTextResponse(answer))
    result = invoke("--api", serve(Starlette(routes=[route])))
    assert "; channel town; channel name Town hall; " in result.stdout


def test_invalid_channel_table_is_wrong_use(report: MakeReport, channels: Path) -> None:
    """The error has the file and the problem."""
    channels.write_text("[[channel]]\n")
    result = invoke("--report", str(report(ALL)), "--channels", str(channels))
    assert result.exit_code == 2
    assert f"--channels: {channels}: entry 1 lacks the key 'match'" in result.stderr


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
    result = invoke("--report", str(report(ALL)), "--json", *flags)
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
        read = invoke("--report", str(report(ALL)), *form, *flags)
        found = invoke("--history", str(history), *form, *flags)
        assert found.stdout == read.stdout
        assert found.exit_code == (1 if expected else 0)


def test_incident_before_1970_is_printed(report: MakeReport, tmp_path: Path) -> None:
    """From a report and from a history."""
    incident = Incident(IncidentKind.LOST, "m", "", since_ms=-2, found_ms=-1)
    found = ChannelIncident("town", incident, False)
    history = tmp_path / "history"
    ParquetHistory(history).write(INCIDENTS, [incident_row(NumberedIncident(1, found))])
    for source in (("--report", str(report([found]))), ("--history", str(history))):
        assert "found 1969-12-31T23:59:59.999Z" in invoke(*source).stdout


def test_unreadable_history_is_wrong_use(history: Path, tmp_path: Path) -> None:
    """One line with the directory or file."""
    done = sds_monitor("incidents", "--history", str(tmp_path / "nowhere"))
    assert done.returncode == 2
    assert f"there is no history in {tmp_path / 'nowhere'}" in done.stderr
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
    assert "only the 1,000 found last are shown" in caplog.text


def test_no_incidents_is_exit_code_0(
    report: MakeReport, serve: Callable[[ASGIApp], str]
) -> None:
    """The text says so; JSON has no lines."""
    path = report([])
    result = invoke("--report", str(path))
    assert (result.exit_code, result.stdout) == (0, "no incidents\n")
    result = invoke("--report", str(path), "--json")
    assert (result.exit_code, result.stdout) == (0, "")
    app = app_of(lambda query: [])
    assert invoke("--api", serve(app)).exit_code == 0


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1", "COLUMNS": "100"}])
def test_untrusted_text_is_escaped(
    report: MakeReport, environment: dict[str, str]
) -> None:
    """Control and direction characters are escaped, markup has no effect."""
    evil = "a\nlost\x1b[2J\u202e[bold]b[/] :boom:\x07"
    incident = Incident(
        IncidentKind.LOST, evil, evil, 1, 2, lacking={evil: 3}, named_by=[evil]
    )
    path = report([ChannelIncident(evil, incident, False)])
    result = invoke("--report", str(path), **environment)
    text = re.sub("\x1b\\[[0-9;]*m", "", result.stdout)
    assert not {"\x1b", "\u202e", "\x07"} & set(text)
    assert r"a\nlost\x1b[2J\u202e[bold]b[/] :boom:\x07" in text
    assert sum(line.strip() == "lost" for line in text.splitlines()) == bool(
        environment
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is no report of sds-monitor"),
        ("[]", "is no report of sds-monitor"),
        ('{"incidents": [{}]}', "is no report of sds-monitor"),
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
    done = sds_monitor("incidents", "--report", str(path))
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_report_without_detail_differs_from_one_without_incidents(
    report: MakeReport,
) -> None:
    """As `build_report` writes them."""
    assert invoke("--report", str(report(None))).exit_code == 2


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--report", "r.json", "--api", "http://x"], "one of --report, --api"),
        (["--history", "h", "--api", "http://x"], "one of --report, --api"),
        (["--api", "127.0.0.1:9108"], "is no URL such as http://127.0.0.1:9108"),
        (["--api", "http://[::"], "is no URL such as http://127.0.0.1:9108"),
        (["--since", "soon"], "'soon' is neither a time such as"),
        (["--since", "9" * 5_000], "is neither a time such as"),
        (["--since", "0001-01-01"], "'0001-01-01' is neither a time such as"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(flags: list[str], said: str) -> None:
    """Exit code 2."""
    done = sds_monitor("incidents", *flags)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


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
    found = invoke("--report", str(report(ALL)), "--json", **elsewhere)
    assert len(ids(found)) == len(ALL)
    elsewhere["SDS_MONITOR_HISTORY"] = str(history)
    assert len(ids(invoke("--json", **elsewhere))) == len(ALL)
    elsewhere["SDS_MONITOR_REPORT"] = str(report(ALL))
    found = invoke("--json", **elsewhere)
    assert found.exit_code == 2
    assert "give one of --report, --api and --history" in found.stderr


def test_checkpoint_is_no_history(history: Path) -> None:
    """The error says where the history is, instead of "no incidents"."""
    found = invoke("--history", str(history.parent))
    assert found.exit_code == 2
    assert f"there is one in {history}" in found.stderr


def test_monitor_that_does_not_answer_is_exit_code_3() -> None:
    """Nothing listens on port 1."""
    done = sds_monitor("incidents", "--api", "http://127.0.0.1:1")
    assert done.returncode == 3
    assert "no monitor answers at http://127.0.0.1:1" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("answer", ["404", "text", "old"])
def test_other_server_is_exit_code_3(
    serve: Callable[[ASGIApp], str], answer: str
) -> None:
    """Its answer does not mean "no incidents"."""
    routes: list[Any] = []
    if answer != "404":
        text = "hello" if answer == "text" else "{}"
        routes.append(Route("/api/v1/incidents", lambda _: PlainTextResponse(text)))
    result = invoke("--api", serve(Starlette(routes=routes)))
    assert result.exit_code == 3
    assert "is it sds-monitor's?" in result.stderr


def test_starting_monitor_is_an_error(
    serve: Callable[[ASGIApp], str],
) -> None:
    """Its own message is printed."""
    result = invoke("--api", serve(app_of(lambda query: [], primed=False)))
    assert result.exit_code == 3
    assert "answers 503: the monitor is starting" in result.stderr
