"""Makes the forecast of one view, or of several views together (`docs/planning.md`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sds_core.planning import filters, measures
from sds_core.planning.hours import Floats, Hours, by_day
from sds_core.planning.limits import Reached, reached, reached_by_level, reached_by_sum
from sds_core.planning.model import draw_paths

WEEK_DAYS = 7
BEFORE_DAYS = 28
"""Maximum number of past days whose values a forecast includes."""


@dataclass(frozen=True, slots=True)
class ForecastSettings:
    """Settings of a forecast.

    Attributes:
        days: Number of days that the forecast covers, at least 7.
        coverage: Share of the simulated futures that an interval contains, in (0, 1).
        epoch_messages: Rate-limit budget of one participant, messages per epoch.
        epoch_share: If a participant sends this share of its rate-limit budget, the
            limit counts as reached.
        message_bytes: Maximum size of a message, bytes; by default, the 150 KiB of
            64/WAKU2-NETWORK.
        record_bytes: Bytes of a Kafka record in addition to the frame: key, headers,
            framing.
        retention_days: For how many days Kafka keeps records; if None, the forecast has
            no figure ``kafka.storage``.
        replication: Number of copies that Kafka stores of each record.
    """

    days: int = 90
    coverage: float = 0.8
    epoch_messages: int = 100
    epoch_share: float = 0.9
    message_bytes: int = 150 * 1024
    record_bytes: int = 260
    retention_days: float | None = None
    replication: int = 1


class Interval(NamedTuple):
    """A forecast value: the median and both ends of the interval."""

    low: float
    mid: float
    high: float


class Outlook(NamedTuple):
    """The recent past and the forecast of one figure.

    Attributes:
        past: Mean of the figure in the last seven days of the history. For a peak
            figure, the maximum.
        week: Forecast of the figure's mean in the next seven days. For a peak figure,
            forecast of the maximum.
        days: Forecast of the figure for each future day.
        before: Values of the figure on the last days of the history, oldest first; at
            most `BEFORE_DAYS` values.
    """

    past: float
    week: Interval
    days: Sequence[Interval]
    before: Sequence[float] = ()


class Forecast(NamedTuple):
    """Forecast of a view.

    Attributes:
        begin_ms: End of the history and start of the forecast, Unix ms of event time.
        history_days: Number of whole days of history that the forecast uses.
        figures: Figures by name: ``bytes``, ``bytes.<part>``, ``retransmission``,
            ``messages``, ``kafka.bytes``, ``kafka.bytes_per_second``,
            ``kafka.storage``, ``epoch_messages``, ``epoch_headroom``,
            ``message_bytes``, ``filter_ids``. Figures that the kind of view does not
            measure are omitted. ``retransmission`` has the bytes that were sent again;
            ``bytes`` includes them. ``kafka.bytes_per_second`` is the rate in a day's
            busiest hour. ``epoch_headroom`` is the unused share of the rate-limit
            budget. ``message_bytes`` is the mean length of a frame, in the hour of the
            day with the longest frames.
    """

    begin_ms: int
    history_days: int
    figures: Mapping[str, Outlook]
    limits: Sequence[Reached]


class _Daily(NamedTuple):
    """The values of a figure on each day, shape (days,).

    The value of a week is the mean of its days or, if `is_peak`, their maximum.
    """

    values: Floats
    is_peak: bool = False


Daily = Mapping[str, _Daily]
"""Daily figures by the names of `Forecast.figures`."""


def daily_figures(
    hours: Hours, parts: Mapping[str, str], settings: ForecastSettings
) -> Daily:
    """Return those figures of a view, by day, that can be summed over several views.

    Only whole days are included. `parts` maps the name of each part of a frame to the
    history's column with the part's bytes; see `measures.Measures`.
    """
    sent = measures.bytes_sent(hours)
    counted = {
        "bytes": sent,
        **{f"bytes.{part}": hours.grown[name] for part, name in parts.items()},
        "retransmission": measures.bytes_repeated(hours),
        "messages": hours.grown["messages"],
    }
    found = {n: _Daily(by_day(one).sum(axis=1)) for n, one in counted.items()}
    written, frames = measures.records(hours), measures.frames(hours)
    if written is not None and frames is not None:
        kafka = sent * written / np.maximum(frames, 1) + settings.record_bytes * written
        found["kafka.bytes"] = _Daily(by_day(kafka).sum(axis=1))
        found["kafka.bytes_per_second"] = _Daily(
            by_day(kafka).max(axis=1) / 3600, is_peak=True
        )
    return found


def forecast(
    hours: Hours, parts: Mapping[str, str], settings: ForecastSettings
) -> Forecast:
    """Return the forecast of a view. For `parts`, see `daily_figures`.

    Raises:
        sds_core.planning.errors.ModelMissing: statsmodels is not installed.
        sds_core.planning.errors.NotFitted: The model does not fit a figure.
    """
    daily = dict(daily_figures(hours, parts, settings))
    levels: dict[str, float] = {}
    if measures.EPOCH in hours.gauges:
        most = by_day(hours.gauges[measures.EPOCH]).max(axis=1)
        daily["epoch_messages"] = _Daily(most, is_peak=True)
        levels["epoch_messages"] = settings.epoch_messages * settings.epoch_share
    if (length := measures.mean_frame(hours)) is not None:
        daily["message_bytes"] = _Daily(by_day(length).max(axis=1), is_peak=True)
        levels["message_bytes"] = settings.message_bytes
    figures, paths = _outlooks(daily, settings)
    if "epoch_messages" in figures:
        budget = settings.epoch_messages
        figures["epoch_headroom"] = _headroom(figures["epoch_messages"], budget)
    limits = []
    for name, limit in levels.items():
        now = float(daily[name].values[-1])
        times = reached_by_level(paths[name], limit, now, hours.end_ms)
        limits.append(reached(name, limit, now, times, settings.coverage))
    if all(name in hours.gauges for name in measures.FILTER):
        filter_forecast = _filter(hours, settings)
        if filter_forecast is not None:
            figures["filter_ids"], limit_of_filter = filter_forecast
            limits.append(limit_of_filter)
    return Forecast(hours.end_ms, _days(daily), figures, limits)


def forecast_daily(daily: Daily, end_ms: int, settings: ForecastSettings) -> Forecast:
    """Return the forecast of daily figures. It has no limits.

    The forecast starts at `end_ms`, Unix ms, when the history ends. The function raises
    the same errors as `forecast`.
    """
    figures, _ = _outlooks(daily, settings)
    return Forecast(end_ms, _days(daily), figures, ())


def sum_daily(views: Sequence[Daily]) -> Daily:
    """Return the sum of each figure over the views, by day.

    Only days for which all views have data are included. Figures of peak hours are
    summed too, although the views may have their peaks at different times.
    """
    days = min(map(_days, views))
    names = dict.fromkeys(name for view in views for name in view)
    return {
        name: _Daily(
            np.sum(
                [view[name].values[-days:] for view in views if name in view], axis=0
            ),
            any(view[name].is_peak for view in views if name in view),
        )
        for name in names
    }


def _days(daily: Daily) -> int:
    return min(len(one.values) for one in daily.values())


def _outlooks(
    daily: Daily, settings: ForecastSettings
) -> tuple[dict[str, Outlook], dict[str, Floats]]:
    paths = {name: draw_paths(one.values, settings.days) for name, one in daily.items()}
    figures = {
        name: _outlook(one, paths[name], settings.coverage)
        for name, one in daily.items()
    }
    written, retention = daily.get("kafka.bytes"), settings.retention_days
    if written is not None and retention is not None:
        stored = _stored(written.values, paths["kafka.bytes"], retention, settings)
        if stored is not None:
            figures["kafka.storage"] = stored
    return figures, paths


def _headroom(used: Outlook, budget: int) -> Outlook:
    def left(one: Interval) -> Interval:
        return Interval(*(1 - share / budget for share in reversed(one)))

    return Outlook(
        1 - used.past / budget,
        left(used.week),
        [left(day) for day in used.days],
        [1 - day / budget for day in used.before],
    )


def _outlook(daily: _Daily, paths: Floats, coverage: float) -> Outlook:
    reduce = np.max if daily.is_peak else np.mean
    week = reduce(paths[:WEEK_DAYS], axis=0)
    return Outlook(
        float(reduce(daily.values[-WEEK_DAYS:])),
        _interval(week, coverage),
        [_interval(day, coverage) for day in paths],
        daily.values[-BEFORE_DAYS:].tolist(),
    )


def _interval(values: Floats, coverage: float) -> Interval:
    outside = (1 - coverage) / 2
    low, mid, high = np.quantile(values, [outside, 0.5, 1 - outside])
    return Interval(float(low), float(mid), float(high))


def _filter(hours: Hours, settings: ForecastSettings) -> tuple[Outlook, Reached] | None:
    bits_set, m_bits, k = (hours.gauges[name] for name in measures.FILTER)
    if not (m_bits[-1] and k[-1]):
        return None
    ids = filters.filter_ids(bits_set, m_bits, k)
    limit = filters.designed_ids(m_bits[-1], k[-1])
    added = by_day(filters.added_ids(ids))
    paths = draw_paths(added.sum(axis=1), settings.days)
    profile = added.sum(axis=0) / max(added.sum(), 1)
    now = float(ids[-1])
    times = reached_by_sum(paths, limit, now, hours.end_ms, profile)
    found = reached("filter_ids", limit, now, times, settings.coverage)
    levels = now + np.cumsum(paths, axis=0)
    past = by_day(ids).max(axis=1)
    rolled_at = filters.rolled_over_at(ids, hours.grown["messages"])
    if rolled_at is not None:
        note = f"rolls over at about {rolled_at:,.0f} ids"
        if rolled_at < limit:
            found = Reached("filter_ids", limit, now, None, None, None, note)
        else:
            found = found._replace(note=note)
        levels = np.minimum(levels, max(rolled_at, now))
    return _outlook(_Daily(past, is_peak=True), levels, settings.coverage), found


def _stored(
    values: Floats, paths: Floats, retention: float, settings: ForecastSettings
) -> Outlook | None:
    if retention > len(values):
        return None
    number = paths.shape[1]
    past = np.repeat(values[:, None], number, axis=1)
    levels = np.concatenate([np.zeros((1, number)), past, paths]).cumsum(axis=0)
    ends = np.arange(len(values), len(levels))
    at = ends - retention
    whole = np.floor(at).astype(int)
    share = (at - whole)[:, None]
    upper = levels[np.minimum(whole + 1, len(levels) - 1)]
    begins = levels[whole] * (1 - share) + upper * share
    stored = (levels[ends] - begins) * settings.replication
    return Outlook(
        float(stored[0].mean()),
        _interval(stored[1 : 1 + WEEK_DAYS].max(axis=0), settings.coverage),
        [_interval(day, settings.coverage) for day in stored[1:]],
    )
