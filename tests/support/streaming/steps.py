"""Ends a process between two steps of the commit of a batch."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest


class Killed(Exception):
    """The process ends here."""


@dataclass
class Steps:
    """Counts steps, and ends the process at one of them.

    A step is a statement of the ledger, its commit, a write to the dead-letter topic or
    an exchange of figures on the board.

    Attributes:
        end_at: Number of the step, or its name.
        at_end: Called there.
        names: The steps so far.
        ended: Whether the process has ended.
    """

    end_at: int | str
    at_end: Callable[[], object] = lambda: None
    names: list[str] = field(default_factory=list)
    ended: bool = False

    def step(self, name: str) -> None:
        """Note a step.

        Raises:
            Killed: The process ends here.
        """
        self.names.append(name)
        if not self.ended and self.end_at in (name, len(self.names)):
            self.ended = True
            self.at_end()
            raise Killed(name)

    def around(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Make steps of before and after some work."""

        def stepped(*given: Any) -> Any:
            self.step(f"before {name}")
            done = work(*given)
            self.step(f"after {name}")
            return done

        return stepped

    def watch_ledger(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make steps of what a connection for batches does, opened from now on."""
        steps = self

        class Connection(sqlite3.Connection):
            def execute(self, *given: Any) -> Any:
                steps.step(given[0])
                return super().execute(*given)

            def executemany(self, *given: Any) -> Any:
                steps.step(given[0])
                return super().executemany(*given)

            def __exit__(self, *given: Any) -> Any:
                if given[0] is None:
                    try:
                        steps.step("before COMMIT")
                    except Killed:
                        # No lock outlives a process.
                        self.rollback()
                        raise
                super().__exit__(*given)
                if given[0] is None:
                    steps.step("after COMMIT")

        connect = sqlite3.connect

        def connected(*given: Any, **named: Any) -> sqlite3.Connection:
            if named.get("check_same_thread", True):
                return connect(*given, **named)
            return connect(*given, **named, factory=Connection)

        monkeypatch.setattr("streaming.ledger.ledger.sqlite3.connect", connected)

    def watch(self, monkeypatch: pytest.MonkeyPatch, owner: Any, *names: str) -> None:
        """Make steps of some methods."""
        for name in names:
            monkeypatch.setattr(owner, name, self.around(name, getattr(owner, name)))
