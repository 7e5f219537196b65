"""What reads a node of a mirror again and again: its cache, or its store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from connectors.waku_rest.client import NodeClient
from connectors.waku_rest.errors import NodeError
from connectors.waku_rest.intake import Intake
from connectors.waku_rest.pacing import persist
from connectors.waku_rest.settings import MirrorSettings
from connectors.waku_rest.trouble import Trouble
from sds_core.mirror.figures import Source

_Result = TypeVar("_Result")


class NodeReader:
    """Base of the readers of one node.

    Args:
        node: The node.
        settings: Settings of the mirror.
        intake: Receives the messages that are read. When it ends, a page that is being
            read is still stored.
    """

    _source: Source
    _decides_state = True
    """Whether the node is up if this reader gets answers."""
    _longest_s: float
    """Longest wait between two attempts, s."""

    def __init__(
        self, node: NodeClient, settings: MirrorSettings, intake: Intake
    ) -> None:
        self._node = node
        self._settings = settings
        self._intake = intake
        self._spool = intake.spool
        self._coverage = intake.coverage
        self._figures = intake.figures.nodes[node.url]
        self._ending = intake.ending
        self._now_ms = intake.now_ms
        self._trouble = Trouble(intake.now_ms)

    async def _persist(
        self,
        attempt: Callable[[], Awaitable[_Result]],
        errors: type[Exception] | tuple[type[Exception], ...] = NodeError,
    ) -> _Result:
        return await persist(
            attempt, errors, self._ending, self._failed, self._longest_s
        )

    def _answered(self) -> None:
        if self._decides_state:
            self._figures.is_up = True
            self._coverage.answered(self._node.url, self._now_ms())

    def _failed(self, error: BaseException) -> None:
        self._figures.failures[self._source] += 1
        self._trouble.begins(error)
        if self._decides_state:
            self._figures.is_up = False
