"""Daemon of Spark's Python workers that imports their common modules once.

Each of Spark's own workers takes a second of CPU time and 80 MB for these imports, and
collects garbage for 60 ms after every task. Here the modules are loaded before the
fork, and their objects are frozen and shared.
"""

from __future__ import annotations

import gc
import os

# A fork has only the thread that forks, so no other thread may be started before a
# fork.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")

import pandas as pd
import pyspark.worker  # loaded here, not in the first task
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
