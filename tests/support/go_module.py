"""Files of a module of Go, which its client fetches once per machine.

So no host need be named here, and a checksum says what was fetched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path


def go_module(module: str, checksum: str, directory: Path) -> Path:
    """The directory of a module's files.

    Args:
        module: Path and version, as ``go mod download`` takes them.
        checksum: As in a go.sum.
        directory: Empty: no module of Go around it is to be heeded.
    """
    go = shutil.which("go")
    assert go, "go is missing (Debian: package golang-go)"
    fetched = subprocess.run(
        [go, "mod", "download", "-json", module],
        cwd=directory,
        # Flags are for builds of this machine; none is done here.
        env={**os.environ, "GOFLAGS": "", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
    )
    assert fetched.returncode == 0, fetched.stdout + fetched.stderr
    described = json.loads(fetched.stdout)
    assert described["Sum"] == checksum
    return Path(described["Dir"])
