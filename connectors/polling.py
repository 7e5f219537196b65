"""Polls another program in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Self, TypeVar

Answer = TypeVar("Answer")


class Poll(Generic[Answer]):
    """While the block runs, polls another program for its newest answer.

    `ask` sends one request, and must not raise an error. `first` counts as the newest
    answer until an answer has arrived.
    """

    def __init__(
        self,
        ask: Callable[[], Answer] | None,
        first: Answer,
        poll_s: float,
        name: str,
    ) -> None:
        self._ask = ask
        self._poll_s = poll_s
        self._name = name
        self._ending = threading.Event()
        self._newest = first
        self._thread: threading.Thread | None = None

    def __call__(self) -> Answer:
        """Return the newest answer."""
        return self._newest

    def __enter__(self) -> Self:
        """Start the thread, unless `ask` is None."""
        if self._ask is not None:
            self._thread = threading.Thread(
                target=self._run, args=(self._ask,), name=self._name, daemon=True
            )
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread."""
        self._end()
        if self._thread is not None:
            self._thread.join()

    def _end(self) -> None:
        """Stop sending requests. A subclass may also cancel a long request here."""
        self._ending.set()

    def _run(self, ask: Callable[[], Answer]) -> None:
        while not self._ending.is_set():
            self._newest = ask()
            self._ending.wait(self._poll_s)
