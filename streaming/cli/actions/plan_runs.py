"""Runs experiments on all cores."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from types import FrameType
from typing import Final

from sds_core.planning.channel import ChannelPlan
from sds_core.planning.experiment import RECEPTIONS, Outcome, run
from streaming.cli.exit_codes import Failed

_ALL_RECEPTIONS: Final = 4_000_000
"""Maximum planned number of received frames in all runs together.

So many take less than two minutes on two cores. If the runs are very many, the number
is exceeded, because at least `_LEAST_RECEPTIONS` are planned for each run.
"""

_LEAST_RECEPTIONS = 5_000


def run_all(
    plans: Mapping[str, ChannelPlan],
    seeds: Sequence[int],
    done: Callable[[], object],
) -> dict[str, list[Outcome]]:
    """Return the outcomes of each plan by its name, in the order of the seeds.

    The more runs are necessary, the shorter each run is. `done` is called after each
    run.

    Raises:
        click.ClickException: A process that simulates runs was killed.
    """
    number = len(plans) * len(seeds)
    size = min(RECEPTIONS, max(_LEAST_RECEPTIONS, _ALL_RECEPTIONS // number))
    outcomes: dict[str, dict[int, Outcome]] = {name: {} for name in plans}
    # The processes are spawned, because a fork would copy locks that other threads of
    # this process hold.
    context, workers = get_context("spawn"), min(os.cpu_count() or 1, number)
    with ProcessPoolExecutor(workers, context, _begin) as pool:
        try:
            with interrupts_held():
                futures = [
                    pool.submit(_run, name, plan, seed, size)
                    for seed in seeds
                    for name, plan in plans.items()
                ]
            for future in as_completed(futures):
                name, seed, outcome = future.result()
                outcomes[name][seed] = outcome
                done()
        except BrokenProcessPool as error:
            message = (
                "a simulation process was killed, perhaps because memory ran out: give "
                "fewer participants or messages"
            )
            raise Failed(message) from error
        except BaseException:
            # `shutdown` does not stop runs that have begun, so their processes are
            # terminated.
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in active_children():
                worker.terminate()
            raise
    return {name: [by[seed] for seed in seeds] for name, by in outcomes.items()}


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends; call this only in the main thread.

    Processes that start in the block ignore Ctrl-C; this process ends them.
    """
    held: list[FrameType | None] = []
    # The mask is inherited by the processes. It covers only this thread, so another
    # thread can receive the signal, whose handler then runs in this thread.
    before = signal.signal(signal.SIGINT, lambda _, frame: held.append(frame))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, before)
    if held and callable(before):
        before(signal.SIGINT, held[0])


def _begin() -> None:
    # The garbage collector runs rarely, because almost all data of simulated
    # participants stays in use.
    gc.set_threshold(100_000, 50, 1_000)


def _run(
    name: str, plan: ChannelPlan, seed: int, receptions: int
) -> tuple[str, int, Outcome]:
    return name, seed, run(plan, seed, receptions=receptions)
