"""Updates the forecasts of a running monitor; the job does not wait for them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import msgspec

from connectors.polling import Poll
from sds_core.observer.protocols import PROTOCOLS
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.planning.errors import ModelMissing
from sds_core.planning.plan import Plan, Plans
from streaming.plan_worker import Order
from streaming.settings import HistorySettings
from streaming.worker import Workers, WorkFailed

_NO_HISTORY = Plan(problem="this job stores no history, which forecasts are made of")
_GRACE_S = 60.0
_LOOK_S = 1.0

# The worker's numeric libraries use one thread, because the job needs the other cores.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_COMMAND = [sys.executable, "-m", "streaming.plan_worker"]


class Bounds(NamedTuple):
    """Limits of a computation.

    Attributes:
        first_s: Time from the job's first figures to the first computation. During this
            time, the job may still be catching up, or may end.
        every_s: Minimum time between two computations.
        views: Maximum number of views of a kind that get a forecast. It equals the
            default of the maximum number of views with their own metric label.
        seconds: Time after which no further forecast of a kind is started. The forecast
            of one view takes about 1.5 s of CPU time.
    """

    first_s: float = 60.0
    every_s: float = 3_600.0
    views: int = 200
    seconds: float = 300.0


class Planner(Poll[Plans]):
    """Computes forecasts while the ``with`` block runs; a call returns the newest ones.

    A job without a history has no forecasts. `current` returns the job's newest
    figures, and `wall_ms` returns wall time, Unix ms.
    """

    def __init__(
        self,
        history: HistorySettings | None,
        current: Callable[[], Snapshot],
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        bounds: Bounds = Bounds(),  # noqa: B008 - it never changes
    ) -> None:
        nothing = Plan() if history is not None else _NO_HISTORY
        first = {protocol.kind.prefix: nothing for protocol in PROTOCOLS}
        ask = None if history is None else partial(self._look, history)
        super().__init__(ask, first, _LOOK_S, "planner")
        self._current = current
        self._wall_ms, self._bounds = wall_ms, bounds
        self._due_s: float | None = None
        self._workers = Workers()

    def _end(self) -> None:
        super()._end()
        self._workers.close()

    def _look(self, history: HistorySettings) -> Plans:
        snapshot, plans = self._current(), self()
        if not snapshot.primed:
            return plans
        now_s = time.monotonic()
        if self._due_s is None:
            self._due_s = now_s + self._bounds.first_s
        if now_s < self._due_s:
            return plans
        self._due_s = now_s + self._bounds.every_s
        directory = str(history.directory)
        return {
            prefix: self._computed(directory, one, snapshot, plans.get(prefix, Plan()))
            for prefix, one in snapshot.views.items()
        }

    def _computed(
        self, directory: str, views: Views[Any], snapshot: Snapshot, before: Plan
    ) -> Plan:
        """Return new forecasts; if these fail, return `before` with the new problem."""
        names = [name for name in views.labels if name in views.totals]
        names += sorted(views.totals.keys() - set(names))
        shown = names[: self._bounds.views]
        order = Order(
            directory,
            views.kind.prefix,
            shown,
            len(names) - len(shown),
            self._wall_ms(),
            snapshot.observer.epoch_messages,
            self._bounds.seconds,
        )
        if find_spec("statsmodels") is None:
            plan = Plan(problem=str(ModelMissing()))
        else:
            plan = self._made(order)
        if plan.problem:
            return msgspec.structs.replace(before, problem=plan.problem)
        return plan

    def _made(self, order: Order) -> Plan:
        limit_s = order.seconds + _GRACE_S
        try:
            return self._workers.answer(_COMMAND, order, Plan, limit_s, _ENVIRONMENT)
        except WorkFailed as error:
            return Plan(problem=f"the last computation {error}")
