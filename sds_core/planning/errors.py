"""Errors that say why a forecast is not possible.

The text of each error can follow the words "no forecast: ".
"""

from __future__ import annotations

from sds_core.text import counted, utc_time


class NoForecast(ValueError):
    """No forecast can be made."""


class TooLittleHistory(NoForecast):
    """The history of a view has too few whole days.

    If the view was silent for days, only the history after its last silence counts.
    `after_ms` is when this silence ended, Unix ms; None if no silence occurred.
    """

    def __init__(self, days: int, needed: int, after_ms: int | None = None) -> None:
        since = ""
        if after_ms is not None:
            since = f" since the silence that ended at {utc_time(after_ms)}"
        super().__init__(
            f"{counted(days, 'whole day')} of history{since}, at least {needed} are "
            "needed"
        )


class Silent(NoForecast):
    """The history of a view has no row after the time `since_ms`, Unix ms."""

    def __init__(self, since_ms: int) -> None:
        super().__init__(f"silent since {utc_time(since_ms)}")


class ClockJumped(NoForecast):
    """A row of the history has the time `at_ms`, Unix ms, which is in the future."""

    def __init__(self, at_ms: int) -> None:
        super().__init__(
            f"the history has a minute of {utc_time(at_ms)}, which is later than now: "
            "a clock jumped"
        )


class TooLittleTraffic(NoForecast):
    """The history of a channel has too few messages or participants for a plan."""

    def __init__(
        self, messages: int, participants: int, hours: int, needed: int
    ) -> None:
        super().__init__(
            f"{counted(messages, 'message')} of {counted(participants, 'participant')} "
            f"in {counted(hours, 'hour')} of history, at least {needed} messages of 2 "
            "participants are needed"
        )


class NotFitted(NoForecast):
    """The forecast model has no solution, for example if a figure is an exact line."""

    def __init__(self) -> None:
        super().__init__("the model cannot be fitted to the history")


class ModelMissing(ImportError):
    """statsmodels, or its dependency scipy, is not installed."""

    def __init__(self) -> None:
        super().__init__("plans need statsmodels: pip install 'sds-monitor[plan]'")
