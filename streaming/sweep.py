"""Simulates the runs of a grid with Spark, one task per run.

Each run is a separate Spark job, which sends its result to the driver. The driver thus
stores a run as soon as the run is finished, and executors need no shared file system.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from connectors.sweep_results import Finished
from sds_core.planning.experiment import run as simulated
from sds_core.planning.grid import Run
from streaming.executors import has_executors, wait_for_executor
from streaming.failure import JobFailed, cause_of

_IN_FLIGHT: Final = 128
"""Maximum number of concurrent runs; greater than the core count of usual clusters."""
_LOOK_S: Final = 0.5


def sweep(
    spark: SparkSession, runs: Iterable[Run], ending: threading.Event
) -> Iterator[Finished]:
    """Simulate runs; yield the result of each run when the run is finished.

    Runs start in the given order, so the caller must put the longest runs first. Runs
    may finish in any order.

    When `ending` is set, all runs that are not finished are cancelled.

    Raises:
        JobFailed: The cluster provides no executor, or a run failed.
    """
    context = spark.sparkContext
    if has_executors(spark):
        wait_for_executor(context)
    pool = ThreadPoolExecutor(_IN_FLIGHT, "run")
    waiting: set[Future[Finished]] = {pool.submit(_job, context, run) for run in runs}
    try:
        while waiting and not ending.is_set():
            done, waiting = wait(waiting, _LOOK_S, FIRST_COMPLETED)
            # A failure ends the loop, so finished runs come first.
            for one in sorted(done, key=lambda run: run.exception() is not None):
                yield one.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if waiting:
            context.cancelAllJobs()


def _job(context: SparkContext, run: Run) -> Finished:
    try:
        (finished,) = context.parallelize([run], 1).map(_simulate).collect()
    except (Py4JJavaError, PySparkException) as error:
        message = f"run {run.number} failed ({cause_of(error)})"
        raise JobFailed(message) from error
    return finished


def _simulate(run: Run) -> Finished:
    started_s = time.process_time()
    outcome = simulated(
        run.plan, run.seed, receptions=run.receptions, target_s=run.target_s
    )
    return Finished.of(run.number, time.process_time() - started_s, outcome)
