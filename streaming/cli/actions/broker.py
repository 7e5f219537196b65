"""Runs the embedded Kafka broker."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from connectors.broker.broker import EmbeddedBroker
from connectors.broker.errors import PortUnavailable
from connectors.broker.jars import archive_of, default_cache_dir, ensure_broker_jars
from connectors.class_archive import ClassArchive
from connectors.java import find_java
from connectors.kafka.producer import partitions_of, write
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.topics import ensure_frames_topic
from connectors.recording import load_recording
from streaming.cli.exit_codes import Failed
from streaming.settings import JobSettings, SourceSettings


def fetch() -> tuple[Path, Path]:
    """Fetch and verify the broker; return the paths of Java and of the broker.

    Raises:
        connectors.java.JavaMissing: Java is missing or too old.
        connectors.broker.jars.BrokerError: The broker cannot be fetched or verified.
    """
    java = find_java()
    jars = ensure_broker_jars(default_cache_dir(), java)
    click.echo(f"broker jars verified in {jars}")
    return java, jars


def run(port: int, directory: Path | None) -> None:
    """Run the broker until a signal ends it.

    If `directory` is None, the broker keeps its files in a temporary directory.

    Raises:
        click.ClickException: The port is in use, or the broker ended by itself.
    """
    try:
        with EmbeddedBroker(directory, port=port or None) as broker:
            click.echo(f"Kafka listens on {broker.bootstrap} (end with Ctrl-C)")
            while broker.wait(1.0) is None:
                pass
            message = (
                "the broker stopped unexpectedly; its log ends with:\n"
                f"{broker.log_tail()}"
            )
            raise Failed(message)
    except PortUnavailable as error:
        message = f"{error}; --port 0 selects a free one"
        raise click.UsageError(message) from error


_RECORDING_TIMEOUT_S = 120
"""Maximum time to write the class archive of the broker, seconds.

The time is usually some 5 s, but far longer on a busy machine.
"""


def prepare() -> None:
    """Fetch the broker, and write files that let the broker and Spark start faster.

    Raises:
        Exception: `fetch` failed; see its errors.
        connectors.broker.errors.BrokerError: The broker cannot be started.
        click.ClickException: The Python environment cannot be written to.
    """
    java, jars = fetch()
    # The import is local, because importing Spark takes most of a second.
    from streaming.session import archive_of_spark
    from streaming.spark_home import make_home

    try:
        click.echo(f"home of Spark {make_home()}")
        for archive, record in (
            (archive_of(jars, java), _record_broker),
            (archive_of_spark(java), _record_spark),
        ):
            if not archive.path.exists():
                record(archive)
            click.echo(f"class archive {archive.path}")
    except OSError as error:
        message = (
            f"this machine cannot be prepared ({error}); all other commands work, but "
            "start more slowly"
        )
        raise Failed(message) from error


def _record_broker(archive: ClassArchive) -> None:
    with archive.recording() as options, EmbeddedBroker(jvm_options=options) as broker:
        os.kill(broker.pid, signal.SIGTERM)
        broker.wait(_RECORDING_TIMEOUT_S)


def _record_spark(archive: ClassArchive) -> None:
    from pyspark.sql import SparkSession

    from streaming.job import running_job
    from streaming.session import record_archive

    with EmbeddedBroker() as broker, TemporaryDirectory() as directory:
        kafka = KafkaSettings(broker.bootstrap)
        records = load_recording()
        ensure_frames_topic(kafka, partitions_of(records))
        write(records, kafka)
        settings = JobSettings(
            SourceSettings(kafka), Path(directory, "checkpoint"), until_caught_up=True
        )

        def use(spark: SparkSession) -> None:
            # The second job reads the checkpoint of the first job, so the archive also
            # covers a start with a checkpoint.
            for _ in range(2):
                with running_job(spark, settings) as job:
                    while not job.wait(1.0):
                        pass

        record_archive(archive, use)
