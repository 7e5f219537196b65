"""``sds-monitor mirror``: what is refused before anything is read, and settings."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import Coroutine, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from connectors.waku_rest.pacing import Ending
from connectors.waku_rest.spool import StateUnusable, open_spool
from connectors.waku_rest.writer import FrameWriter
from sds_core.mirror.figures import Loss, MirrorFigures
from streaming.cli.actions.mirror import topics_to_mirror
from streaming.cli.mirror import command
from streaming.cli.node_options import TrafficOptions
from streaming.cli.signals import EndedBySignal
from tests.support.cli.command import sds_monitor
from tests.support.small_disk import fill, needs_root, small_disk

TOPIC = "/app/1/town/proto"
SHARD = "/waku/2/rs/1/0"
NODE = ("--rest", "http://127.0.0.1:1")
KAFKA = ("--bootstrap", "127.0.0.1:1")
GIVEN = (*NODE, *KAFKA, "--pubsub-topic", SHARD)


def mirror(
    state: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> Result:
    """Run the command on a state of its own."""
    words = ["--state", str(state), "--metrics-port", "0", *arguments]
    return CliRunner().invoke(command, words, env=environment)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*KAFKA, "--pubsub-topic", SHARD), "--rest"),
        ((*NODE, "--pubsub-topic", SHARD), "--bootstrap"),
        ((*NODE, *KAFKA), "give --content-topic or --pubsub-topic"),
        ((*NODE, *KAFKA, "--content-topic", "town"), "give /application/version"),
        ((*GIVEN, "--listen", "none", "--no-store"), "leave nothing to mirror"),
        ((*GIVEN, "--listen", "filter"), "--listen filter needs --content-topic"),
        ((*GIVEN, "--listen", "radio"), "radio"),
        ((*GIVEN, "--rest", "localhost:8645"), "such as http://127.0.0.1:8645"),
        (
            (*GIVEN, "--rest", "http://me:pw1@node"),
            "give user and password as authorization",
        ),
        ((*GIVEN, "--rest-ca-file", __file__), "certificates cannot be read from"),
        ((*GIVEN, "--rest-ca-file", "nowhere.pem"), "nowhere.pem"),
        ((*GIVEN, "--poll-interval", "0"), "range 10ms<=x<=1m"),
        ((*GIVEN, "--content-topic", "/app/1/a,b/proto"), "use --no-store"),
        ((*GIVEN, "--pubsub-topic", ""), "begins with a slash"),
        ((*GIVEN, "--topic", "a b"), "'a b' is not a valid topic name"),
        ((*GIVEN, "--cache-messages", "1"), "x>=2"),
        ((*GIVEN, "--observer", "t" * 513), "1 to 512 are allowed"),
        ((*GIVEN, "--observer", ""), "1 to 512 are allowed"),
        ((*GIVEN, "--state", "s3://bucket/mirror"), "is a URL, but a directory"),
        ((*GIVEN, "--rest-authorization", "pw1"), "SDS_MONITOR_REST_AUTHORIZATION"),
        (
            (*GIVEN, "--host", "192.0.2.1", "--insecure-web"),
            "cannot listen on 192.0.2.1",
        ),
        (("--from-file", "a.jsonl"), "is renamed: run sds-monitor import a.jsonl"),
    ],
)
def test_invalid_flags_are_refused_in_one_line(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """As wrong use, with what to do and without secrets."""
    result = mirror(tmp_path / "state", *arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert "pw1" not in result.output
    (line,) = (one for one in result.stderr.splitlines() if one.startswith("Error: "))
    assert result.stderr.endswith(f"{line}\n")


def test_authorization_of_several_lines_is_refused(tmp_path: Path) -> None:
    """It cannot be in a header; the error does not print it."""
    variable = {"SDS_MONITOR_REST_AUTHORIZATION": "Bearer pw1\nHost: x"}
    result = mirror(tmp_path / "state", *GIVEN, environment=variable)
    assert result.exit_code == 2
    assert "one line of printable ASCII" in result.output
    assert "pw1" not in result.output


def test_the_state_of_another_mirror_is_refused(tmp_path: Path) -> None:
    """Of a running mirror, of another observer, or no state at all."""
    with open_spool(tmp_path, "mine", ""):
        assert "another mirror runs on" in mirror(tmp_path, *GIVEN).output
    result = mirror(tmp_path, *GIVEN, "--observer", "yours")
    assert result.exit_code == 2
    assert "belongs to observer mine, not yours" in result.output
    file = tmp_path / "file"
    file.touch()
    result = mirror(file / "state", *GIVEN)
    assert result.exit_code == 2
    assert "use a directory of your own" in result.output


def test_locked_file_of_the_state_can_be_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart works once the other program ends, for example a backup."""
    with open_spool(tmp_path, None, ""):
        pass
    connect = partial(sqlite3.connect, timeout=0)
    monkeypatch.setattr("connectors.waku_rest.spool.sqlite3.connect", connect)
    with closing(connect(tmp_path / "mirror.sqlite")) as database:
        database.execute("BEGIN EXCLUSIVE")
        result = mirror(tmp_path, *GIVEN)
    assert result.exit_code == 4
    assert "database is locked; end the program that has the file" in result.output


@needs_root
def test_start_on_a_full_disk_can_be_repeated(tmp_path: Path) -> None:
    """A service must be restarted until there is space."""
    with small_disk(tmp_path / "disk", "4m") as disk:
        fill(disk)
        flags = ("--state", str(disk / "state"), "--metrics-port", "0")
        result = sds_monitor("mirror", *GIVEN, *flags)
    assert result.returncode == 4
    line = result.stderr.splitlines()[-1]
    assert "No space left on device; free space on this disk" in line


def test_port_in_use_does_not_count_as_a_kill(tmp_path: Path) -> None:
    """No page was read, so the numbers have no hole at the next start."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = mirror(tmp_path, *GIVEN, "--metrics-port", port)
    assert result.exit_code == 2
    assert f"port {port} is in use: choose another" in result.output
    with open_spool(tmp_path, None, "") as spool:
        assert not spool.begin()


def test_second_signal_does_not_count_as_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example a second Ctrl-C: everything has been stored by then."""

    def first_signal(ending: Ending, work: Coroutine[Any, Any, None]) -> None:
        ending.set()
        asyncio.run(work)

    def second_signal(writer: FrameWriter) -> None:
        raise EndedBySignal

    action = "streaming.cli.actions.mirror"
    monkeypatch.setattr(f"{action}.run_until_signal", first_signal)
    monkeypatch.setattr(f"{action}.FrameWriter.close", second_signal)
    assert mirror(tmp_path, *GIVEN).exit_code == 0
    with open_spool(tmp_path, None, "") as spool:
        assert not spool.begin()


def test_first_scrape_has_the_losses_of_earlier_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prometheus would take a first value of 0 for a reset, and count all of them."""
    with open_spool(tmp_path, None, "") as spool:
        spool.skip_number(Loss.FULL_PAGE)
    exported = []

    def app(figures: MirrorFigures) -> None:
        exported.append(dict(figures.losses))
        raise StateUnusable("seen")

    monkeypatch.setattr("streaming.cli.actions.mirror.create_mirror_app", app)
    assert "seen" in mirror(tmp_path, *GIVEN).output
    assert exported == [dict.fromkeys(Loss, 0) | {Loss.FULL_PAGE: 1}]


def test_settings_can_come_from_a_file(tmp_path: Path) -> None:
    """As lists if a flag can be repeated; invalid ones are named."""
    config = tmp_path / "monitor.toml"
    config.write_text(
        'bootstrap = "127.0.0.1:1"\n'
        "[mirror]\n"
        'rest = ["http://127.0.0.1:1", "nowhere"]\n'
        f'content-topic = ["{TOPIC}"]\n'
        f'state = "{tmp_path / "state"}"\n'
        "store = false\n"
    )
    result = CliRunner().invoke(command, ["--config", str(config)])
    assert result.exit_code == 2
    assert "'nowhere' is not the URL of a node" in result.output
    config.write_text('[mirror]\nrest = [["http://127.0.0.1:1"]]\n')
    result = CliRunner().invoke(command, ["--config", str(config)])
    assert result.exit_code == 2
    assert "which is not a list of single values" in result.output


def shards(*content_topics: str, cluster: int = 1, count: int = 8) -> dict[str, Any]:
    """Topics to mirror if only content topics are given."""
    return topics_to_mirror(TrafficOptions((), content_topics, cluster, count))


def test_content_topics_find_their_shards() -> None:
    """By autosharding, unless a shard is given; each shard once."""
    other = "/other/2/town/proto"
    found = shards(TOPIC, other, TOPIC, "/app/1/village/proto")
    assert sorted(topic for some in found.values() for topic in some) == sorted(
        [TOPIC, other, "/app/1/village/proto"]
    )
    (of_app,) = (some for some in found.values() if TOPIC in some)
    assert "/app/1/village/proto" in of_app
    assert set(found) <= {f"/waku/2/rs/1/{shard}" for shard in range(8)}
    of_shard = topics_to_mirror(TrafficOptions((SHARD,), (TOPIC,), 1, 8))
    assert of_shard == {SHARD: (TOPIC,)}
    assert topics_to_mirror(TrafficOptions((SHARD, SHARD), (), 1, 8)) == {SHARD: ()}
    assert shards(TOPIC, cluster=16, count=1) == {"/waku/2/rs/16/0": (TOPIC,)}
    for topics in (["town"], []):
        with pytest.raises(click.UsageError):
            shards(*topics)


def test_a_state_is_required() -> None:
    """Records that wait for Kafka must be stored."""
    result = CliRunner().invoke(command, GIVEN)
    assert result.exit_code == 2
    assert "Missing option '--state'" in result.output


def test_a_file_is_refused_wherever_it_is_named(tmp_path: Path) -> None:
    """By environment and configuration file too."""
    environment = {"SDS_MONITOR_FROM_FILE": "a.jsonl"}
    result = mirror(tmp_path, *GIVEN, environment=environment)
    assert result.exit_code == 2
    assert "sds-monitor import a.jsonl" in result.output
    config = tmp_path / "monitor.toml"
    config.write_text('[mirror]\nfrom-file = "b.jsonl"\n')
    result = mirror(tmp_path, *GIVEN, "--config", str(config))
    assert result.exit_code == 2
    assert "sds-monitor import b.jsonl" in result.output
    assert "--from-file" not in CliRunner().invoke(command, ["--help"]).output
