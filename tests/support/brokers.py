"""Embedded brokers with further settings, and three of them that are one cluster."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from connectors.broker import broker
from connectors.broker.broker import EmbeddedBroker
from connectors.broker.configuration import (
    DATA,
    HOST,
    PROPERTIES,
    BrokerSecurity,
    Ports,
)
from connectors.kafka.settings import KafkaSettings
from tests.support.kafka import free_port
from tests.support.waiting import wait_for

_NODES = (1, 2, 3)


@contextmanager
def options(**values: object) -> Iterator[None]:
    """Start brokers with further settings in the block.

    Args:
        values: By name, with underscores for dots; they count before the usual ones.
    """
    usual = broker.write_configuration

    def write(data_dir: Path, ports: Ports, security: BrokerSecurity | None) -> None:
        usual(data_dir, ports, security)
        with (data_dir / PROPERTIES).open("a") as file:
            for name, value in values.items():
                file.write(f"{name.replace('_', '.')}={value}\n")

    with patch.object(broker, "write_configuration", write):
        yield


class Cluster:
    """Three brokers, of which the first is the controller too and always runs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ports = {node: free_port() for node in _NODES}
        self._controller = free_port()
        self._brokers = {
            node: EmbeddedBroker(directory / str(node), port=port)
            for node, port in self._ports.items()
        }

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers."""
        return ",".join(f"{HOST}:{port}" for port in self._ports.values())

    def start(self, node: int) -> None:
        """Start a broker; the first one before all others."""
        listeners = f"CLIENTS://{HOST}:{self._ports[node]}"
        controller = f"{HOST}:{self._controller}"
        roles = "broker"
        if node == 1:
            listeners, roles = (
                f"{listeners},CONTROLLER://{controller}",
                "broker,controller",
            )
        else:
            self._prepare(node)
        with options(
            node_id=node,
            process_roles=roles,
            listeners=listeners,
            advertised_listeners=f"CLIENTS://{HOST}:{self._ports[node]}",
            controller_quorum_bootstrap_servers=controller,
            # A broker that was killed is missed soon.
            broker_session_timeout_ms=3_000,
            broker_heartbeat_interval_ms=500,
            replica_lag_time_max_ms=3_000,
        ):
            self._brokers[node].start()

    def stop(self, node: int) -> None:
        """Stop a broker in order."""
        self._brokers[node].stop()

    def stop_all(self) -> None:
        """Stop all brokers, the controller last."""
        for node in reversed(_NODES):
            self.stop(node)

    def make_topic(
        self, name: str, replicas: Sequence[int], **configuration: str
    ) -> KafkaSettings:
        """Make a topic of one partition on some brokers; the first of them leads.

        Args:
            name: Its name.
            replicas: The brokers.
            configuration: Settings by name, with underscores for dots.
        """
        dotted = {key.replace("_", "."): one for key, one in configuration.items()}
        new = NewTopic(
            name, replica_assignments={0: list(replicas)}, topic_configs=dotted
        )
        with self._admin() as admin:
            wait_for(lambda: len(admin.describe_cluster()["brokers"]) == len(_NODES))
            admin.create_topics([new])
        self.wait_for_leader(name, replicas[0])
        return KafkaSettings(self.bootstrap, name)

    def wait_for_leader(self, topic: str, leader: int, in_sync: int = 0) -> None:
        """Wait until a broker leads the partition, with at least so many in sync."""

        def leads() -> bool:
            with self._admin() as admin:
                (found,) = admin.describe_topics([topic])
            (partition,) = found["partitions"]
            return (
                partition["leader_id"] == leader
                and len(partition["isr_nodes"]) >= in_sync
            )

        wait_for(leads)

    @contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        admin = KafkaAdminClient(bootstrap_servers=f"{HOST}:{self._ports[1]}")
        try:
            yield admin
        finally:
            admin.close()

    def _prepare(self, node: int) -> None:
        """Format the directory of a broker that is no controller."""
        data = self._directory / str(node) / DATA
        if data.exists():
            return
        data.mkdir(parents=True)
        of_first = self._directory / "1" / DATA / "meta.properties"
        (cluster,) = [
            line
            for line in of_first.read_text().splitlines()
            if line.startswith("cluster.id=")
        ]
        directory = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()
        lines = ["version=1", cluster, f"node.id={node}"]
        lines.append(f"directory.id={directory.rstrip('=').replace('-', 'A')}")
        (data / "meta.properties").write_text("\n".join(lines) + "\n")


@contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    """Three brokers while the block runs."""
    three = Cluster(directory)
    with ExitStack() as stack:
        stack.callback(three.stop_all)
        for node in _NODES:
            three.start(node)
        yield three
