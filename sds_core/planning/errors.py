"""Why there is no forecast; each message ends the line "no forecast: …"."""

from __future__ import annotations

from sds_core.text import counted, utc_time


class NoForecast(ValueError):
    """The history does not allow a forecast."""


class TooLittleHistory(NoForecast):
    """There are too few whole days.

    Attributes:
        days: Whole days that could be used.
        needed: Least number of days.
    """

    def __init__(self, days: int, needed: int, after_ms: int | None = None) -> None:
        self.days = days
        self.needed = needed
        since = (
            ""
            if after_ms is None
            else f" since the silence that ended at {utc_time(after_ms)}"
        )
        unit = "day" if days == 1 else "days"
        super().__init__(
            f"{days} whole {unit} of history{since}, at least {needed} are needed"
        )


class Silent(NoForecast):
    """The channel has sent nothing for days.

    Attributes:
        since_ms: End of its last minute, Unix ms.
    """

    def __init__(self, since_ms: int) -> None:
        self.since_ms = since_ms
        super().__init__(f"silent since {utc_time(since_ms)}")


class ClockJumped(NoForecast):
    """A row is of the future.

    Attributes:
        at_ms: Begin of its minute, Unix ms.
    """

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms
        super().__init__(
            f"the history has a minute of {utc_time(at_ms)}, which is later than now: "
            "a clock jumped"
        )


class TooLittleTraffic(NoForecast):
    """There is too little traffic to plan with.

    Attributes:
        messages: Messages in the hours that were used.
        participants: Participants in them.
        needed: Least number of messages.
    """

    def __init__(
        self, messages: int, participants: int, hours: int, needed: int
    ) -> None:
        self.messages = messages
        self.participants = participants
        self.needed = needed
        what = (
            f"{counted(messages, 'message')} of {counted(participants, 'participant')}"
        )
        super().__init__(
            f"{what} in {counted(hours, 'hour')} of history, at least {needed} "
            "messages of 2 participants are needed"
        )


class NotFitted(NoForecast):
    """The model has no solution for a figure, such as one that is exactly a line."""

    def __init__(self) -> None:
        super().__init__("the model cannot be fitted to the history")


class NoTime(NoForecast):
    """The time for a computation was over before it came to the view."""

    def __init__(self) -> None:
        super().__init__(
            "the time for forecasts was over; the command plan forecast has no limit"
        )


class ModelMissing(ImportError):
    """statsmodels, or scipy which comes with it, is not installed."""

    def __init__(self) -> None:
        super().__init__("plans need statsmodels: pip install 'sds-monitor[plan]'")
