"""The JSON schema of the Compose specification, as the Compose library checks by it.

It is in no package on PyPI; Go's client fetches it as a part of that library, once per
machine, and no host need be named here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

_MODULE = "github.com/compose-spec/compose-go/v2@v2.16.2"
_SUM = "h1:pTp1DqQwJzFd85GzlWsSszKA1ABrV/ySqsClujIcWA8="


def compose_schema(directory: Path) -> dict[str, Any]:
    """The schema, for the validator of JSON Schema 2020-12.

    Args:
        directory: Empty: no module of Go around it is to be heeded.
    """
    go = shutil.which("go")
    assert go, "go is missing (Debian: package golang-go)"
    fetched = subprocess.run(
        [go, "mod", "download", "-json", _MODULE],
        cwd=directory,
        # Flags are for builds of this machine; none is done here.
        env={**os.environ, "GOFLAGS": "", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
    )
    assert fetched.returncode == 0, fetched.stdout + fetched.stderr
    module = json.loads(fetched.stdout)
    assert module["Sum"] == _SUM
    schema = Path(module["Dir"], "schema/compose-spec.json")
    parsed: dict[str, Any] = json.loads(schema.read_text("utf-8"))
    return parsed
