"""What long-running commands tell: a line a record on standard error, text or JSON."""

from __future__ import annotations

import enum
import json
import logging
import sys
from collections import Counter
from datetime import UTC, datetime

import click

from sds_core.observer.snapshot import Snapshot
from sds_core.observer.totals import Verdict
from streaming.cli.settings import setting

logger = logging.getLogger("sds-monitor")


class LogFormat(enum.StrEnum):
    """How a record is written."""

    TEXT = "text"
    JSON = "json"


log_option = setting(
    "--log-format",
    type=click.Choice(LogFormat, case_sensitive=False),
    default=LogFormat.TEXT,
    help="Of what is told on standard error; json is one object a line.",
)
