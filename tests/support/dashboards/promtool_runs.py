"""Cases of promtool that are made by a test."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def assert_cases_hold(cases: Mapping[str, Any], directory: Path) -> None:
    """Run cases in the form of `promtool test rules`; fail with the differences."""
    file = directory / "cases.yml"
    file.write_text(yaml.safe_dump(dict(cases), width=1_000_000))
    done = subprocess.run(
        ["promtool", "test", "rules", file], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
