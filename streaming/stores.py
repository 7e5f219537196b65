"""The files beside the checkpoint that each kind of view with findings has."""

from __future__ import annotations

from typing import NamedTuple

from connectors.history.schema import CHANNEL_TABLES, KindTables
from streaming.findings import Findings
from streaming.recent import RecentMinutes


class Store(NamedTuple):
    """What is stored of the views, or groups, of one kind.

    Attributes:
        findings: Recent incidents, and what the history does not have yet.
        recent: Figures of the last hour.
        tables: The kind's tables in the history.
    """

    findings: Findings
    recent: RecentMinutes
    tables: KindTables = CHANNEL_TABLES
