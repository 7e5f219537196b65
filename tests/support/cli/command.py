"""The `sds-monitor` command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys


def sds_monitor(
    *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command as a shell does."""
    return subprocess.run(
        [sys.executable, "-m", "streaming.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
        check=False,
    )
