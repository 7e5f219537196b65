"""Fetches and makes what the starts of other commands need."""

from __future__ import annotations

import os
import signal

import click

from connectors.broker.broker import EmbeddedBroker
from connectors.broker.jars import archive_of, default_cache_dir, ensure_broker_jars
from connectors.class_archive import ClassArchive
from connectors.java import find_java

_RECORDING_TIMEOUT_S = 120
"""Writing an archive takes some 5 s, and far longer on a busy machine."""


def prepare() -> None:
    """Fetch the broker, and make what lets the broker and Spark start faster.

    Raises:
        connectors.java.JavaMissing: Java is missing or too old.
        connectors.broker.errors.BrokerError: The broker cannot be fetched or started.
        click.ClickException: This environment cannot be written to.
    """
    java = find_java()
    jars = ensure_broker_jars(default_cache_dir(), java)
    click.echo(f"broker jars verified in {jars}")
    # Importing Spark takes most of a second.
    from streaming.session import archive_of_spark, record_archive
    from streaming.spark_home import make_home

    try:
        click.echo(f"home of Spark {make_home()}")
        for archive, record in (
            (archive_of(jars, java), _record_broker),
            (archive_of_spark(java), record_archive),
        ):
            if not archive.exists:
                record(archive)
            click.echo(f"class archive {archive.path}")
    except OSError as error:
        message = f"cannot be written ({error}): other commands work without it"
        raise click.ClickException(message) from error


def _record_broker(archive: ClassArchive) -> None:
    with archive.recording() as options, EmbeddedBroker(jvm_options=options) as broker:
        os.kill(broker.pid, signal.SIGTERM)
        broker.wait(_RECORDING_TIMEOUT_S)
