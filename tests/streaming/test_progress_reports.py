"""How the job follows Spark's reports on its batches."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from streaming.progress import newest_first


class _Report:
    """A report of Spark, which counts how often it is read."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self.reads = 0

    def json(self) -> str:
        """Return the report as text."""
        self.reads += 1
        return json.dumps({"batchId": self._batch})


def test_reports_that_are_known_are_not_read_again() -> None:
    """Spark holds a hundred; each costs calls to the JVM, every second."""
    reports = [_Report(batch) for batch in range(100)]
    query: Any = SimpleNamespace(_jsq=SimpleNamespace(recentProgress=lambda: reports))
    found = newest_first(query)
    assert [next(found)["batchId"], next(found)["batchId"]] == [99, 98]
    assert sum(report.reads for report in reports) == 2
