"""The jars of Spark's own Kafka source, which pyspark does not bring along.

Maven Central had no 4.3.0 of them where this was written, so Spark 4.3.0 runs with
those of 4.2.0; the interface between the two did not change.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pyspark

from benchmarks.data import cache_dir
from connectors.java import find_java

VERSION = "4.2.0"
_JARS = {
    "spark-sql-kafka-0-10_2.13": ("org.apache.spark", VERSION),
    "spark-token-provider-kafka-0-10_2.13": ("org.apache.spark", VERSION),
    "kafka-clients": ("org.apache.kafka", "3.9.2"),
    "commons-pool2": ("org.apache.commons", "2.13.1"),
}
_TIMEOUT_S = 600


class NoJars(RuntimeError):
    """The jars are not in the cache and cannot be fetched."""


def kafka_source_jars() -> list[Path]:
    """Return the jars; fetches those that the cache does not have.

    Raises:
        NoJars: One of them cannot be fetched.
    """
    directory = cache_dir() / "jars"
    wanted = [directory / f"{name}-{rev}.jar" for name, (_, rev) in _JARS.items()]
    if not all(jar.exists() for jar in wanted):
        _fetch(directory)
    if missing := [jar.name for jar in wanted if not jar.exists()]:
        message = f"not fetched from Maven Central: {', '.join(missing)}"
        raise NoJars(message)
    return wanted


def _fetch(directory: Path) -> None:
    """Fetch all jars with the Ivy that pyspark brings along."""
    directory.mkdir(parents=True, exist_ok=True)
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    dependencies = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" transitive="false"/>'
        for name, (org, rev) in _JARS.items()
    )
    with tempfile.TemporaryDirectory() as work:
        Path(work, "ivy.xml").write_text(
            '<ivy-module version="2.0">'
            '<info organisation="sds-monitor" module="bench"/>'
            f'<dependencies defaultconfmapping="*->default">{dependencies}'
            "</dependencies></ivy-module>"
        )
        words = ["-cache", "cache", "-ivy", "ivy.xml"]
        words += ["-retrieve", "jars/[artifact]-[revision].[ext]", "-types", "jar"]
        subprocess.run(  # noqa: S603 - fixed words
            [find_java(), "-jar", ivy, *words],
            cwd=work,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        for jar in Path(work).glob("jars/*.jar"):
            (directory / jar.name).write_bytes(jar.read_bytes())
