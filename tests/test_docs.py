"""The pages are correct: links, metrics, commands and examples."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.consumer import OffsetRange, fetch
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import (
    MAX_MESSAGE_BYTES,
    Client,
    KafkaSettings,
    TopicMissing,
)
from docs import make_metrics
from sds_core.metrics import MetricKind
from sds_core.observer.dead_letter_view import DeadLetterDigest
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    incident_object,
)
from sds_core.observer.record import MAX_AHEAD_MS, RawRecord
from sds_core.observer.report import build_report
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.seen_frames import frames_of
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tap_kind import TAP_FIGURES, TAPS
from sds_core.simulation.scenario import Scenario
from sds_core.wire import MAX_VALUE_BYTES, Reason
from sds_core.wire.proto.sds_spec_pb2 import SdsMessage
from streaming.chunk import Chunk
from streaming.cli import group
from tests.support.digests import unpacked
from tests.support.metrics import ALL_METRICS
from tests.support.snapshots import snapshot_of
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs/figures.md"
_NOT_OURS = {
    ".git",
    ".venv",
    "node_modules",
    "mutants",
    ".pytest_cache",
    "build",
    "dist",
}
PAGES = sorted(
    page
    for page in ROOT.rglob("*.md")
    if not _NOT_OURS.intersection(page.relative_to(ROOT).parts)
)

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"(?:\S*/)?sds-monitor (.+)")
_METRIC = re.compile(r"\bsds_[a-z0-9_]+(?![\w./])")

NOW_MS = 1_750_000_000_000

pages = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for name, text in found if name == language]


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What links into a page may name."""
    text = prose(page)
    found = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        found.add(plain.replace(" ", "-"))
    return found


@pages
def test_links_within_the_repository_resolve(page: Path) -> None:
    """Each linked file and anchor exists."""
    broken = []
    for link in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pages
def test_named_metrics_are_declared(page: Path) -> None:
    """Every metric on a page is exported."""
    # A package, a prefix, and a key of a plan.
    known = {"sds_core", "sds_monitor", "sds_r"}
    for metric in ALL_METRICS:
        suffixes = {
            MetricKind.HISTOGRAM: ("", "_bucket", "_sum", "_count"),
            MetricKind.INFO: ("_info",),
        }.get(metric.kind, ("",))
        known.update(metric.name + suffix for suffix in suffixes)
    text = page.read_text(encoding="utf-8")
    assert sorted(set(_METRIC.findall(text)) - known) == []


def commands(page: Path) -> Iterator[str]:
    """The arguments of every sds-monitor command line of a page."""
    lines = [
        line
        for text in blocks(page, "sh")
        for line in text.replace("\\\n", " ").splitlines()
    ]
    lines += re.findall(r"`([^`\n]+)`", prose(page))
    for line in lines:
        if found := _COMMAND.fullmatch(line.strip()):
            yield found[1]


def parse(arguments: list[str]) -> None:
    """Parse the arguments of sds-monitor without running anything."""
    name, *rest = arguments
    context = click.Context(group, info_name="sds-monitor")
    command = group.get_command(context, name)
    if command is None:
        # No command: a flag of the group, such as --version, or a mistake.
        group.make_context("sds-monitor", arguments)
        pytest.fail(f"sds-monitor {name}: there is no such command")
    # A command named alone is no call of it.
    alone: tuple[type[click.ClickException], ...] = ()
    if not rest:
        alone = (click.MissingParameter, click.exceptions.NoArgsIsHelpError)
    with suppress(click.exceptions.Exit, *alone):  # Exit: --help
        command.make_context(name, rest, parent=context)


@pages
def test_commands_of_the_pages_parse(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command, flag and setting on a page exists."""
    for variable in [name for name in os.environ if name.startswith("SDS_MONITOR_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    for text in blocks(page, "toml"):
        Path("monitor.toml").write_text(text)
    for command in commands(page):
        arguments = shlex.split(command, comments=True)
        if arguments[0] == "import":  # The file may be of another program.
            Path(arguments[-1]).touch()
        try:
            parse(arguments)
        except click.ClickException as error:
            pytest.fail(f"sds-monitor {command}: {error.format_message()}")
        if arguments[0] == "export":  # Later commands of the page read its file.
            Path(arguments[-1]).touch()


def flags(command: click.Command, context: click.Context) -> Iterator[str]:
    """The flags of a command and of the commands below it."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from flags(inner, context)
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            yield option.opts[0]


def test_every_flag_is_on_a_page() -> None:
    """As a flag, also in its negative form, or as a name in a file of settings."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    unexplained = [
        flag
        for flag in dict.fromkeys(flags(group, click.Context(group)))
        if not re.search(rf"--(no-)?{flag[2:]}(?![\w-])|(?<![\w-]){flag[2:]} = ", text)
    ]
    assert [flag for flag in unexplained if flag != "--version"] == []


def test_table_of_metrics_is_up_to_date() -> None:
    """After a change of metrics run ``python -m docs.make_metrics``."""
    assert make_metrics.PAGE.read_text(encoding="utf-8") == make_metrics.page()


def test_named_settings_have_the_defaults_of_the_code() -> None:
    """For settings with defaults in figures.md."""
    text = FIGURES.read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)` = ([\d.,e-]*\d) ?(ms|s|min|h|%)?", text)
    units = {"s": 1000, "min": 60_000, "h": 3_600_000}
    for name, number, unit in named:
        value = float(number.replace(",", "")) * units.get(unit, 1)
        assert getattr(DEFAULTS, name) == value, name
    assert {name for name, _, _ in named} == set(DEFAULTS.__dataclass_fields__)


def figures_in(part: dict[str, Any], path: str = "") -> Iterator[str]:
    """Dotted names of the figures of a report's object; of a histogram only its own."""
    for key, value in part.items():
        if isinstance(value, dict) and "p50" not in value:
            yield from figures_in(value, f"{path}{key}.")
        else:
            yield path + key


def test_every_figure_is_explained() -> None:
    """Figures of the detailed report and of metrics, by name."""
    channel = "a channel's id"
    report = build_report(
        snapshot_of(channels={channel: ChannelTotals()}, undecodable={"": 0}),
        generated_at_ms=0,
        details={channel: []},
        incidents=[],
    )
    names = set(figures_in(report.pop("channels")[channel]))
    totals = report.pop("totals")
    names |= {"channels", "totals", "undecodable"} | set(figures_in(report))
    del totals["undecodable"]
    assert set(figures_in(totals)) < names
    names |= set(CHANNEL_FIGURES.report(ChannelTotals())["gap_ms"])
    for table in (CHANNEL_FIGURES, TAP_FIGURES):
        names |= {metric.name for metric in table.metrics}
    text = FIGURES.read_text(encoding="utf-8")
    assert sorted(name for name in names if f"`{name}`" not in text) == []


def test_every_field_of_an_incident_is_explained() -> None:
    """Each field, and each kind."""
    incident = Incident(IncidentKind.LOST, "m", "s", since_ms=0, found_ms=0)
    names = {*incident_object(ChannelIncident("ch", incident, False)), *IncidentKind}
    _, _, section = FIGURES.read_text(encoding="utf-8").partition(
        "\n## 12. Incidents\n"
    )
    assert sorted(name for name in names if f"`{name}`" not in section) == []


def reasons_of_the_page() -> list[str]:
    """The dead-letter reasons of records.md in the order of their tests."""
    text = (ROOT / "docs/records.md").read_text(encoding="utf-8")
    return re.findall(r"^\| [\d-]+ \| `(\w+)` \|", text, re.MULTILINE)


def test_documented_reasons_are_those_of_the_code() -> None:
    """Every dead-letter reason is explained."""
    assert sorted(reasons_of_the_page()) == sorted(Reason)


def test_reasons_are_checked_in_the_documented_order() -> None:
    """The first fault in the table gives the reason."""
    bad = [("source", b"nowhere")]
    ahead_ms = NOW_MS + MAX_AHEAD_MS + 1
    # Each record has one fault less than the one before it.
    faulty = [
        (bytes(MAX_VALUE_BYTES + 1), bad, b"other", ahead_ms),
        (b"", bad, b"other", ahead_ms),
        (b"", [], b"other", ahead_ms),
        (b"\xff\xff", [], b"other", ahead_ms),
        (_spec(), [], b"other", ahead_ms),
        (_spec(message_id="m"), [], b"other", ahead_ms),
        (_spec(message_id="m", content=b"c"), [], b"other", ahead_ms),
        (_spec(message_id="m", content=b"c", channel_id="c" * 513), [], b"x", ahead_ms),
        (_spec(message_id="m", content=b"c", channel_id="ch"), [], b"x", ahead_ms),
        (_spec(message_id="m", content=b"c", channel_id="ch"), [], b"ch", ahead_ms),
    ]
    chunk = Chunk(0, NOW_MS)
    for offset, (value, headers, key, time_ms) in enumerate(faulty):
        chunk.add(RawRecord(0, offset, time_ms, key, value, headers), NOW_MS)
    (row,) = chunk.take_rows()
    found = msgspec.msgpack.decode(row.digest, type=DeadLetterDigest)
    expected = [r for r in reasons_of_the_page() if r != Reason.MVDS_ERROR]
    assert [letter.reason for letter in found.letters] == expected


def _spec(**fields: object) -> bytes:
    return SdsMessage(sender_id="s", **fields).SerializeToString()  # type: ignore[arg-type]


def test_scenario_example_is_valid() -> None:
    """The one in simulator.md, with all that the page says of it."""
    (example,) = blocks(ROOT / "docs/simulator.md", "toml")
    scenario = Scenario.from_mapping(tomllib.loads(example))
    assert scenario.channels[0].channel_ids() == ["room-1", "room-2"]


@pytest.mark.parametrize(("number", "lines"), [(1, 15), (2, 25)])
@pytest.mark.parametrize("name", ["participant.md", "mvds.md"])
def test_participant_example_prints_what_the_page_says(
    name: str, number: int, lines: int, tmp_path: Path
) -> None:
    """Each has few lines of code; the second one stores its state.

    The page's first one is a file: tests/test_quick_start.py.
    """
    page = ROOT / "docs" / name
    example = blocks(page, "python")[number]
    output = blocks(page, "text")[number]
    assert len([line for line in example.splitlines() if line.strip()]) <= lines
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == output.strip()


@pytest.mark.parametrize("marked_by", ["Segmenter(", "ReliableNetwork(", "RestNode("])
def test_reliable_channel_example_prints_what_the_page_says(marked_by: str) -> None:
    """Those of reliable-channel.md; that with a node only defines a function."""
    page = ROOT / "docs/reliable-channel.md"
    example = next(one for one in blocks(page, "python") if marked_by in one)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout in ["", *blocks(page, "text")]
    assert bool(done.stdout) is (marked_by != "RestNode(")


def rounds_of_heartbeats(offsets: TopicOffsets) -> int:
    """How often each partition of the topic, which may be missing, got a heartbeat."""
    try:
        ends = offsets.latest(offsets.partitions())
    except TopicMissing:
        return 0
    # One partition has the frame as well.
    return min(ends.values())


@pytest.mark.kafka
def test_producer_example_writes_what_the_monitor_reads(tmp_path: Path) -> None:
    """The example of records.md runs unchanged, and its records are accepted.

    Its heartbeats go on until Ctrl-C: otherwise its channel would soon be blind.
    """
    (example,) = blocks(ROOT / "docs/records.md", "python")
    program = tmp_path / "tap.py"
    program.write_text(example)
    with EmbeddedBroker() as broker:
        settings = KafkaSettings(broker.bootstrap)
        with (
            closing(TopicOffsets(settings)) as offsets,
            subprocess.Popen(
                [sys.executable, program],
                env=os.environ | {"BOOTSTRAP": broker.bootstrap},
                cwd=tmp_path,
                stderr=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            try:
                wait_for(lambda: rounds_of_heartbeats(offsets) >= 2)
                assert process.poll() is None
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=60)
            finally:
                process.kill()
            assert process.returncode == 0, errors
            ends = offsets.latest(offsets.partitions())
        ranges = [OffsetRange(partition, 0, end) for partition, end in ends.items()]
        records = [
            record
            for client in Client
            for found in fetch(client, settings, ranges)
            for record in found
        ]
    heartbeats = [record for record in records if not record.value]
    frames = [record for record in records if record.value]
    # Each client has read them once.
    assert len(heartbeats) >= 2 * len(ends) * len(Client)
    assert len(frames) == len(Client)
    wall_ms = time.time_ns() // 1_000_000
    chunk = Chunk(0, 0)
    for record in itertools.chain(frames[:1], heartbeats):
        chunk.add(record, wall_ms)
    rows = {row.key: row.digest for row in chunk.take_rows()}
    assert set(rows) == {CHANNELS.key("ch"), TAPS.key("my-tap-1")}
    (frame,) = frames_of(unpacked(rows[CHANNELS.key("ch")]))
    assert (frame.sender, frame.named.message_id, frame.seq) == ("snd", "mid", 1)
    assert MAX_MESSAGE_BYTES == 33_554_432  # As records.md says.
