"""A real mirror that reads from a node of the tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sds_core.simulation.log import PUBSUB_TOPIC
from tests.support.kafka import free_port
from tests.support.server_program import running
from tests.support.waku_node import ConformanceNode


@contextmanager
def running_mirror(
    node: ConformanceNode, bootstrap: str, directory: Path
) -> Iterator[str]:
    """Run a mirror of a node's pubsub topic until the block ends; yields `host:port`.

    Args:
        node: That runs.
        bootstrap: Of Kafka; the topic is that of the directory's name.
        directory: For its files; made.
    """
    directory.mkdir()
    port = free_port()
    command = [
        *(sys.executable, "-m", "streaming.cli", "mirror"),
        *("--rest", node.url, "--pubsub-topic", PUBSUB_TOPIC),
        *("--bootstrap", bootstrap, "--topic", f"{directory.parent.name}-mirrored"),
        *("--state", str(directory / "state"), "--metrics-port", str(port)),
    ]
    address = f"127.0.0.1:{port}"
    with running(command, f"http://{address}/readyz", directory / "log"):
        yield address
