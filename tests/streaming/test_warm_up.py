"""What is logged if a session cannot be warmed up."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from streaming import session


class _Spark:
    """A local session whose query succeeds, and counts."""

    def __init__(self) -> None:
        self.queries = 0
        self.sparkContext = self
        self.defaultParallelism = 1

    def range(self, *bounds: int) -> _Spark:
        return self

    def mapInArrow(self, function: Any, schema: str) -> _Spark:
        return self

    def collect(self) -> None:
        self.queries += 1


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (
            TypeError("'JavaPackage' object is not callable"),
            [
                "Spark passes states to Python with Spark's own pickler, which is "
                "slower: "
                "TypeError(\"'JavaPackage' object is not callable\")"
            ],
        ),
        (Py4JNetworkError("the JVM has ended"), []),
    ],
)
def test_failed_pickler_is_a_warning_unless_the_jvm_has_ended(
    error: Exception,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The workers are started nevertheless."""

    def fail(spark: Any) -> None:
        raise error

    monkeypatch.setattr(session, "use_bytes_pickler", fail)
    monkeypatch.setattr(session, "has_executors", lambda spark: False)
    caplog.set_level(logging.INFO, logger="sds-monitor")
    spark = _Spark()
    session.warm_up(spark).join()  # type: ignore[arg-type]
    assert [record.getMessage() for record in caplog.records] == lines
    assert spark.queries == (0 if isinstance(error, Py4JNetworkError) else 1)
