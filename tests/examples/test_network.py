"""The network of the example chat ends without noise."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from examples.chat.wire import Hello, write
from tests.support.chat import ROOT

HELLO = Hello("alice", "/app/1/tea/proto")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_network_ends_silently_while_participants_are_connected(
    number: signal.Signals,
) -> None:
    """One has said its name, one has not, and one is gone."""
    command = [sys.executable, "-m", "examples.chat.network", "--port", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as network:
        try:
            assert network.stdout is not None
            port = int(network.stdout.readline().split()[3].rstrip(","))

            address = ("127.0.0.1", port)
            with (
                socket.create_connection(address) as named,
                socket.create_connection(address),
            ):
                write(SimpleNamespace(write=named.sendall), HELLO)  # type: ignore[arg-type]
                socket.create_connection(address).close()
                # The network has no answer to wait for.
                time.sleep(0.3)
                network.send_signal(number)
                _, errors = network.communicate(timeout=20)
            assert (network.returncode, errors) == (0, "")
        finally:
            network.kill()
