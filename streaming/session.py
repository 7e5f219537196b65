"""Makes the Spark session of the job."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from connectors.java import find_java
from streaming.settings import SessionSettings

_LOG4J = Path(__file__).with_name("log4j2.properties")


def make_session(settings: SessionSettings) -> SparkSession:
    """Start Spark, or return the session that already runs.

    Raises:
        connectors.java.JavaMissing: Java is missing or too old.
    """
    java = find_java()
    os.environ.setdefault("JAVA_HOME", str(java.resolve().parent.parent))
    # Otherwise workers run the first python3 in PATH.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # py4j logs an error for every call to a session that is being stopped.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    rocksdb = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    return (
        SparkSession.builder.master(settings.master)
        .appName("sds-monitor")
        .config("spark.api.mode", "classic")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", settings.shuffle_partitions)
        .config("spark.sql.streaming.stateStore.providerClass", rocksdb)
        .config(
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
            True,
        )
        .config("spark.python.worker.faulthandler.enabled", True)
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        # TieredStopAtLevel=1: only the quick compiler, since batches are short and the
        # work is in Python.
        # Xss8m: when a query is stopped, Spark redacts its plan with regular
        # expressions that need a deep stack.
        .config(
            "spark.driver.extraJavaOptions",
            "-XX:TieredStopAtLevel=1 -Xss8m "
            f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
        )
        .getOrCreate()
    )
