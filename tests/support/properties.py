"""Settings of hypothesis."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_EXPLORED = os.environ.get("SDS_MONITOR_TEST_EXAMPLES")

CAREFUL = settings(
    max_examples=int(_EXPLORED or 250),
    derandomize=not _EXPLORED,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""The same examples at every run.

With ``SDS_MONITOR_TEST_EXAMPLES=5000`` in the environment so many others.
"""
