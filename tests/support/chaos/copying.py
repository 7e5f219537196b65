"""A second mirror's topic, which audits fill from the first one's."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from tests.support.chaos.errors import expect
from tests.support.chaos.plan import COPYING, Victim
from tests.support.kafka import free_port, records
from tests.support.soak.commands import Command, sample
from tests.support.waiting import wait_for

_PARTITIONS = 2
_LONGEST_RUN = "1d"


class Copying:
    """`audit serve` on a mirror's topic, and `audit --fix` of another topic.

    Args:
        directory: For files.
        mirrored: The mirror's topic.
    """

    def __init__(self, directory: Path, mirrored: KafkaSettings) -> None:
        self._copied = replace(mirrored, topic="copied")
        ensure_frames_topic(self._copied, _PARTITIONS)
        self._directory = directory
        self._peer = f"127.0.0.1:{free_port()}"
        server = Command(
            "audit serve",
            directory / "audit-server.log",
            bootstrap=mirrored.bootstrap,
            topic=mirrored.topic,
            state=directory / "audit-server",
            sync_port=self._peer.rpartition(":")[2],
            metrics_port=0,
        )
        audit = self._audit("audit", last="3m", every="3s", metrics_port=0)
        self._commands = {Victim.AUDIT_SERVER: server, Victim.AUDIT: audit}

    def strike(self, victim: Victim) -> str:
        """Kill one of the two, and start it again; return what happened, in a line.

        Raises:
            Broken: It ended before.
        """
        command = self._commands[victim]
        self._expect_alive(victim)
        command.kill()
        command.start()
        return "started again"

    def finish(self, mirrored: Set[str]) -> None:
        """Copy the rest, and end both.

        Args:
            mirrored: The hashes of all messages of the mirror's topic.

        Raises:
            Broken: One of the two had ended, or the other topic has not the same
                messages in the end.
        """
        for victim in COPYING:
            self._expect_alive(victim)
        server = self._commands[Victim.AUDIT_SERVER]
        url = server.metrics_url()
        wait_for(lambda: sample(url, "sds_audit_serve_messages") == len(mirrored))
        expect(
            self._commands[Victim.AUDIT].end() == 0, "the audit did not end in order"
        )
        with self._audit("rest", last=_LONGEST_RUN) as rest:
            expect(rest.process.wait(120) in (0, 1), "the rest was not copied")
        with self._audit("check", last=_LONGEST_RUN) as check:
            expect(check.process.wait(120) == 0, "the copied topic lacks messages")
        expect(server.end() == 0, "the audit server did not end in order")
        copied = {
            (value or b"").decode()
            for record in records(self._copied)
            for name, value in record.headers
            if name == "waku-hash"
        }
        expect(copied == mirrored, f"{len(copied ^ mirrored)} messages differ")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run both within a `with` block, and kill them at its end."""
        with ExitStack() as stack:
            for command in self._commands.values():
                stack.enter_context(command)
            yield

    def _audit(self, name: str, **options: object) -> Command:
        return Command(
            "audit",
            self._directory / f"{name}.log",
            bootstrap=self._copied.bootstrap,
            topic=self._copied.topic,
            peer=self._peer,
            fix=True,
            settle="0s",
            **options,
        )

    def _expect_alive(self, victim: Victim) -> None:
        code = self._commands[victim].process.poll()
        expect(code is None, f"the {victim} ended with {code}, and nobody killed it")
