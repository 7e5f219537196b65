"""What ends a command, and what SIGHUP means."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.files.record_file import write_records
from sds_core.observer.record import RawRecord
from streaming.cli.channels import reload_on_hangup
from streaming.cli.signals import (
    EndedBySignal,
    end_on_signals,
    end_requested,
    run_until_signal,
)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """As in a program that somebody starts by hand; those of the tests come back."""
    before = {
        number: signal.signal(
            number,
            signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL,
        )
        for number in SIGNALS
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: int) -> None:
    """Send a signal to this process."""
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_ends_the_program_with_code_0(number: int) -> None:
    """By an exception, so that everything is stopped."""
    end_on_signals()
    with pytest.raises(EndedBySignal) as ended:
        send(number)
    assert not ended.value.code


def test_second_hangup_does_not_disturb_the_end() -> None:
    """A closed terminal sends one, and so does its shell."""
    end_on_signals()
    with pytest.raises(EndedBySignal):
        send(signal.SIGHUP)
    send(signal.SIGHUP)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_requests_the_end_of_uninterruptible_work(number: int) -> None:
    """Afterwards signals end the program at once again."""
    end_on_signals()
    with (
        end_requested(is_interruptible=False) as ending,
        end_requested(ending, is_interruptible=False),
    ):
        send(number)
        assert ending.is_set()
        time.sleep(1)
    with pytest.raises(EndedBySignal):
        send(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_interrupts_work_that_goes_on(number: int) -> None:
    """Which may wait for Kafka. A second signal does not take its time away."""
    end_on_signals()
    begin_s = time.monotonic()
    with end_requested() as ending:
        send(number)
        send(number)
        assert ending.is_set()
        with pytest.raises(EndedBySignal):
            time.sleep(30)
    assert time.monotonic() - begin_s < 10


def test_signal_lets_work_go_on_that_makes_progress() -> None:
    """For example, while Kafka acknowledges the records that were sent."""
    end_on_signals()
    written = 0
    with end_requested(progress=lambda: written):
        send(signal.SIGTERM)
        for _ in range(25):
            time.sleep(0.1)
            written += 1
        with pytest.raises(EndedBySignal):
            time.sleep(30)


def test_work_that_ends_at_a_signal_is_not_interrupted() -> None:
    """Nor is what follows it."""
    end_on_signals()
    with end_requested() as ending:
        send(signal.SIGTERM)
        assert ending.is_set()
    time.sleep(1)


COMMANDS = {
    "export": ["export", "out.jsonl"],
    "import": ["import", "in.jsonl"],
    "trace": ["trace", "0x12"],
    "simulate": ["simulate", "--duration", "1s"],
    "replay": ["replay", *("--from", "1000", "--to", "2000", "--report", "out.json")],
    "dead-letter list": ["dead-letter", "list"],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_signal_ends_a_command_that_waits_for_kafka(
    arguments: list[str], tmp_path: Path
) -> None:
    """With code 0, long before --kafka-timeout, and without a part of a file."""
    write_records([RawRecord(0, 0, 1_000, b"a", b"1", ())], tmp_path / "in.jsonl")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "streaming.cli", *arguments]
        with subprocess.Popen(
            [*command, "--bootstrap", bootstrap],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            connection, _ = silent.accept()
            with connection:
                # The command has sent its first request, and waits for the answer.
                connection.recv(1)
                running.terminate()
                try:
                    printed, _ = running.communicate(timeout=4)
                finally:
                    running.kill()
    assert (running.returncode, printed) == (0, "")
    assert [one.name for one in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_ends_the_work_of_a_loop(number: int) -> None:
    """SIGHUP too: a closed terminal must not leave `audit --every` behind."""
    end_on_signals()
    ending = asyncio.Event()

    async def work() -> None:
        send(number)
        await asyncio.wait_for(ending.wait(), 10)

    run_until_signal(ending, work())
    assert ending.is_set()
    with pytest.raises(EndedBySignal):
        send(number)


def test_hangup_that_is_ignored_stays_ignored() -> None:
    """As for a command started with `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    end_on_signals(defer_hangup=True)
    with reload_on_hangup(None), end_requested() as ending:
        send(signal.SIGHUP)
        assert not ending.is_set()


def test_hangup_before_the_table_was_read_is_not_lost(tmp_path: Path) -> None:
    """It ends the command neither then nor later."""
    file = tmp_path / "channels.toml"
    file.write_text('[[channel]]\nmatch = "a"\nname = "First"\n')
    end_on_signals(defer_hangup=True)
    send(signal.SIGHUP)
    with reload_on_hangup(file) as table, end_requested() as ending:
        assert table is not None
        assert table.reload_if_requested() is not None
        send(signal.SIGHUP)
        assert table.reload_if_requested() is not None
        assert not ending.is_set()
    send(signal.SIGHUP)


def test_pending_hangup_ends_a_command_without_a_table() -> None:
    """As soon as it is known that there is no table."""
    end_on_signals(defer_hangup=True)
    send(signal.SIGHUP)
    with pytest.raises(EndedBySignal), reload_on_hangup(None):
        pass


def test_hangup_ends_a_command_without_a_table() -> None:
    """At once."""
    end_on_signals(defer_hangup=True)
    with reload_on_hangup(None), pytest.raises(EndedBySignal):
        send(signal.SIGHUP)
