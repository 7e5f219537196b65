"""A standalone cluster of Spark on loopback: a master and two workers, as processes.

The workers have another directory and another Python path than the tests, and the
Python of their executors has the installed dependencies, but not sds-monitor.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pyspark

from tests.support.waiting import wait_for

WORKERS = 2
_SPARK_HOME = Path(pyspark.__file__).parent
_LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}
_QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        master: Address for ``--master``.
        page: Address of the master's page.
        directory: Directory of its files, and its processes' own.
        workers: The workers, one core each.
    """

    master: str
    page: str
    directory: Path
    workers: tuple[psutil.Popen, ...]

    @property
    def python(self) -> Path:
        """The Python of the executors: ours, but it cannot import sds-monitor."""
        return self.directory / "python" / "bin" / "python"

    @property
    def environment(self) -> dict[str, str]:
        """Variables for a program that uses the cluster."""
        return {
            **_LOOPBACK,
            "SPARK_CONF_DIR": str(self.directory / "conf"),
            "PYSPARK_PYTHON": str(self.python),
        }

    def end_applications(self) -> int:
        """End all applications, as an operator does on the master's page."""
        with httpx.Client(trust_env=False) as client:
            text = client.get(self.page).text
            names = re.findall(r'name="id" value="(app-[^"]+)"', text)
            for name in names:
                (token,) = set(re.findall(r'name="csrfToken" value="([^"]+)"', text))
                asked = {"id": name, "terminate": "true", "csrfToken": token}
                answer = client.post(f"{self.page}/app/kill/", data=asked)
                assert answer.is_redirect, answer.text
        return len(names)

    def executors(self) -> list[psutil.Process]:
        """The running executors of all applications."""
        return [
            child
            for worker in self.workers
            for child in worker.children()
            if _is_executor(child)
        ]


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(word.endswith(_EXECUTOR) for word in process.cmdline())
    except psutil.Error:
        # One that has ended, of an earlier application.
        return False


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[Cluster]:
    """A cluster, ended with the block.

    Args:
        directory: An empty directory.
    """
    _make_python(directory / "python")
    (directory / "conf").mkdir()
    (directory / "conf" / "spark-defaults.conf").write_text(
        "spark.executor.memory 512m\n"
        f"spark.executor.extraJavaOptions {_QUICK_JAVA}\n"
        f"spark.driver.defaultJavaOptions {_QUICK_JAVA}\n"
        "spark.ui.enabled false\n"
        "spark.scheduler.maxRegisteredResourcesWaitingTime 20s\n"
    )
    with ExitStack() as stack:
        master = stack.enter_context(_daemon("master", directory, "--port", "0"))
        log = directory / "master.log"
        address = wait_for(lambda: _find(r"Spark master at (\S+)", log, master))
        page = wait_for(lambda: _find(r"MasterWebUI .* at (\S+)", log, master))
        workers = tuple(
            stack.enter_context(
                _daemon(
                    "worker",
                    directory,
                    *("--cores", "1", "--memory", "600m"),
                    *("--work-dir", str(directory / f"worker-{number}")),
                    address,
                    name=f"worker-{number}",
                )
            )
            for number in range(WORKERS)
        )
        for number in range(WORKERS):
            log = directory / f"worker-{number}.log"
            wait_for(lambda log=log: "Successfully registered" in log.read_text())
        yield Cluster(address, page, directory, workers)


def _make_python(place: Path) -> None:
    """Make an environment that has the libraries of this one, but not sds-monitor."""
    venv.create(place, symlinks=True)
    (found,) = place.glob("lib/python*/site-packages")
    # A path in such a file is a place of packages; what is linked from there, as an
    # editable installation is, stays unknown.
    (found / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = place / "bin" / "python"
    for package, is_there in {"msgspec": True, "streaming": False}.items():
        tried = subprocess.run(
            [python, "-c", f"import {package}"],
            cwd=place,
            env={},
            capture_output=True,
        )
        assert (tried.returncode == 0) is is_there, package


@contextmanager
def _daemon(
    kind: str, directory: Path, *arguments: str, name: str | None = None
) -> Iterator[psutil.Popen]:
    """A master or worker; its log is a file of its name."""
    name = name or kind
    own = directory / name
    own.mkdir()
    environment = {
        variable: value
        for variable, value in os.environ.items()
        if not variable.startswith(("PYTHON", "SPARK", "PYSPARK", "SDS_MONITOR"))
    }
    environment |= _LOOPBACK | {
        "SPARK_HOME": str(_SPARK_HOME),
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": _QUICK_JAVA,
    }
    with (directory / f"{name}.log").open("w") as log:
        process = psutil.Popen(
            [
                *(_SPARK_HOME / "bin" / "spark-class",),
                f"org.apache.spark.deploy.{kind}.{kind.title()}",
                *("--host", "127.0.0.1", "--webui-port", "0"),
                *arguments,
            ],
            cwd=own,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: psutil.Popen) -> None:
    """Kill a daemon and the executors that it has started."""
    family = [*process.children(recursive=True), process]
    for one in family:
        if one.is_running():
            one.kill()
    psutil.wait_procs(family, 20)


def _find(pattern: str, log: Path, process: psutil.Popen) -> str | None:
    """Return what a running daemon's log says; None before it does."""
    assert process.poll() is None, log.read_text()
    found = re.search(pattern, log.read_text())
    return found[1] if found else None


def spark_submit(cluster: Cluster) -> list[str]:
    """Return the command line of ``spark-submit`` on a cluster, up to its program."""
    return [
        str(_SPARK_HOME / "bin" / "spark-submit"),
        *("--master", cluster.master),
        *("--conf", f"spark.pyspark.driver.python={sys.executable}"),
    ]
