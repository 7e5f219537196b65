"""A real audit that is repeated, of a mirror against a node of the tests."""

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
def running_audit(
    node: ConformanceNode, bootstrap: str, directory: Path
) -> Iterator[str]:
    """Compare what `running_mirror` mirrors with the node; yields `host:port`.

    Args:
        node: That runs.
        bootstrap: Of Kafka.
        directory: Of the mirror.
    """
    port = free_port()
    command = [
        *(sys.executable, "-m", "streaming.cli", "audit", "--every", "1"),
        *("--rest", node.url, "--pubsub-topic", PUBSUB_TOPIC),
        *("--bootstrap", bootstrap, "--topic", f"{directory.parent.name}-mirrored"),
        *("--metrics-port", str(port)),
    ]
    address = f"127.0.0.1:{port}"
    with running(command, f"http://{address}/readyz", directory / "audit.log"):
        yield address
