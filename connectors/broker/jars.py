"""Fetches Kafka's jars once, and verifies their checksums when a broker starts.

Apache Ivy fetches the jars. Ivy is a part of pyspark, so users install only Java. File
`kafka_2.13-4.2.1.sha256` lists the jars and their checksums in the format of
`sha256sum`. This project computed the checksums. To upgrade Kafka, fetch the new jars,
run the tests, and write a new file of checksums.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import platformdirs

from connectors.broker.errors import BrokerError
from connectors.class_archive import ClassArchive
from connectors.storage.disk import locked

KAFKA_VERSION = "4.2.1"
_NAME = f"kafka_2.13-{KAFKA_VERSION}"

_FETCH_TIMEOUT_S = 900
"""Time limit of a fetch. A fetch usually takes half a minute, but Ivy would wait
forever for a server that does not answer."""

_IVY_XML = f"""\
<ivy-module version="2.0">
  <info organisation="sds-monitor" module="broker"/>
  <dependencies defaultconfmapping="*->default">
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}"/>
    <!-- Without a binding for slf4j the broker logs nothing, not even why it stops.
         The version is that of Kafka's log4j-core. -->
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="2.25.4"/>
    <!-- Needed only by macros when Kafka is compiled. -->
    <exclude org="org.scala-lang" module="scala-reflect"/>
  </dependencies>
</ivy-module>
"""

_log = logging.getLogger("sds-monitor")


class BrokerJarsUnavailable(BrokerError):
    """Kafka's jars are missing and cannot be fetched, or have wrong checksums."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(
            f"Kafka {KAFKA_VERSION} cannot be used: {reason}; remedy: {remedy}"
        )


def default_cache_dir() -> Path:
    """Return the directory in which this program caches files for the user."""
    return platformdirs.user_cache_path("sds-monitor")


def ensure_broker_jars(cache_dir: Path, java: Path) -> Path:
    """Return the directory of the broker's jars; fetch missing jars (41 MB in all).

    If no jar is missing, the call needs neither network nor write permission. If
    several processes call this function at the same time, only one fetches the jars.
    `java` runs Ivy.

    Raises:
        BrokerJarsUnavailable: A jar cannot be fetched or has a wrong checksum, or the
            cache cannot be used. Jars with a wrong checksum are deleted, and the next
            call fetches them again.
    """
    jars = cache_dir.absolute() / _NAME
    try:
        # This check needs no lock: a jar is fetched to another directory, and a rename
        # moves the complete jar into this directory.
        if not _missing_jars(jars):
            return jars
        jars.mkdir(parents=True, exist_ok=True)
        with locked(jars.parent / f"{_NAME}.lock", waits=True):
            if missing := _missing_jars(jars):
                _fetch(jars, missing, java)
    except OSError as error:
        reason = f"the cache {jars} cannot be used ({error})"
        remedy = (
            "make this directory readable and writable, or use another cache directory "
            "(XDG_CACHE_HOME)"
        )
        raise BrokerJarsUnavailable(reason, remedy) from error
    return jars


def classpath(jars: Path) -> str:
    """Return the broker's class path, which has only jars with known checksums."""
    return ":".join(str(jars / name) for name in pinned_checksums())


def archive_of(jars: Path, java: Path) -> ClassArchive:
    """Return the archive of the broker's Java classes; its file may not exist yet."""
    return ClassArchive.of(
        "broker", jars, java, [jars / name for name in pinned_checksums()]
    )


@cache
def pinned_checksums() -> Mapping[str, str]:
    """Return the expected SHA-256 of each jar, hexadecimal, by the jar's file name."""
    lines = Path(__file__).with_name(f"{_NAME}.sha256").read_text().splitlines()
    return {name: sha256 for sha256, name in (line.split() for line in lines)}


def _missing_jars(jars: Path) -> list[str]:
    """Return the names of the jars that are not in directory `jars`.

    If jars have a wrong checksum, delete them and raise `BrokerJarsUnavailable`.
    """
    present = [name for name in pinned_checksums() if (jars / name).exists()]
    if wrong := _wrong_jars(jars, present):
        for name in wrong:
            (jars / name).unlink(missing_ok=True)
        reason = (
            f"files in {jars} had a wrong checksum and were deleted: {', '.join(wrong)}"
        )
        raise BrokerJarsUnavailable(
            reason, "repeat the command to download the deleted files again"
        )
    return [name for name in pinned_checksums() if name not in present]


def _wrong_jars(jars: Path, names: list[str]) -> list[str]:
    pinned = pinned_checksums()
    return [name for name in names if _sha256(jars / name) != pinned[name]]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(jars: Path, missing: list[str], java: Path) -> None:
    """Fetch all jars to a temporary directory; move the missing jars to `jars`."""
    _log.info("downloading Kafka %s (41 MB, only once) to %s", KAFKA_VERSION, jars)
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix="fetch-") as name:
        work_dir = Path(name)
        _run_ivy(work_dir, java)
        fetched = work_dir / "jars"
        if absent := [name for name in missing if not (fetched / name).exists()]:
            reason = f"the Maven repository has no {', '.join(absent)}"
            raise BrokerJarsUnavailable(reason, _remedy(jars))
        if wrong := _wrong_jars(fetched, missing):
            reason = (
                "downloaded files have a wrong checksum and were deleted: "
                f"{', '.join(wrong)}"
            )
            remedy = "check whether a proxy or Maven mirror changes files"
            raise BrokerJarsUnavailable(reason, remedy)
        for name in missing:
            (fetched / name).rename(jars / name)


def _run_ivy(work_dir: Path, java: Path) -> None:
    remedy = _remedy(work_dir.parent / _NAME)
    (work_dir / "ivy.xml").write_text(_IVY_XML)
    command: list[str | Path] = [
        *(java, "-jar", _ivy_jar()),
        *("-cache", work_dir / "ivy"),
        *("-ivy", "ivy.xml"),
        # This path is relative, because Ivy would also parse brackets in the name of
        # the user's cache directory.
        *("-retrieve", "jars/[artifact]-[revision](-[classifier]).[ext]"),
        # Type `bundle` is needed for scala-logging, whose jar is published with this
        # type.
        *("-types", "jar", "bundle"),
    ]
    try:
        ivy = subprocess.run(  # noqa: S603 - fixed arguments, no shell
            command,
            cwd=work_dir,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_FETCH_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        reason = f"not fetched within {_FETCH_TIMEOUT_S} s"
        raise BrokerJarsUnavailable(reason, remedy) from error
    if ivy.returncode != 0:
        reason = f"not fetched ({_complaint(ivy.stdout)})"
        raise BrokerJarsUnavailable(reason, remedy)


def _complaint(ivy_output: str) -> str:
    lines = [line.strip() for line in ivy_output.splitlines() if line.strip(" \t:")]
    for sign in ("Exception", "not found", "FAILED"):
        for line in lines:
            if sign in line:
                return line
    return lines[-1] if lines else "Ivy printed nothing"


def _remedy(jars: Path) -> str:
    return (
        "check whether this machine reaches Maven Central (a proxy goes into "
        "JAVA_TOOL_OPTIONS as -Dhttps.proxyHost=... -Dhttps.proxyPort=...), or copy "
        f"{jars} from a machine that has it"
    )


def _ivy_jar() -> Path:
    # `find_spec` finds pyspark without importing it. An import would take most of a
    # second.
    pyspark = importlib.util.find_spec("pyspark")
    for place in (pyspark and pyspark.submodule_search_locations) or ():
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    reason = "pyspark, which is needed to fetch Kafka, is not installed"
    raise BrokerJarsUnavailable(reason, "install sds-monitor with its dependencies")
