"""Daemon that forks Spark's Python workers; it imports their common modules only once.

With Spark's own daemon, each worker takes a second of CPU time and 80 MB for these
imports, and collects garbage for 60 ms after every task. This daemon loads the modules
before it forks workers, so the workers share the modules' objects. The objects are
frozen, so the garbage collector skips them.
"""

from __future__ import annotations

import gc
import os

# A forked process has only the thread that called fork, so the daemon must not have
# other threads. These variables prevent threads of OpenBLAS and Arrow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")

import pandas as pd
import pyspark.worker  # loaded before the fork, not in the first task
from pyspark import daemon
from pyspark.sql.pandas import serializers

import streaming.source
from streaming.arrow_fold import use_arrow_fold

__all__ = ["pd", "pyspark", "serializers", "streaming"]


def main() -> None:
    """Fork workers when Spark asks for them, until Spark ends."""
    use_arrow_fold()
    gc.collect()
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
