"""Words and numbers as the status page shows them.

Templates get this module as `words`. Ids are untrusted text: `short`, `bounded` and
`whole` make them safe to print in a line. These functions do not escape HTML:
templates and the script do.
"""

from __future__ import annotations

import re

from sds_core.observer.freshness import Freshness, MissingTopic
from sds_core.observer.histogram import BUCKETS_MS, Histogram
from sds_core.observer.shown_verdicts import NOT_WATCHED
from sds_core.observer.verdict import Verdict
from sds_core.text import clock_time, printable, shorten, utc_time
from sds_core.text import counted as counted
from sds_core.text import number as number
from sds_core.text import one_line as one_line
from sds_core.text import time_of_day as time_of_day

NOTHING = "\N{EN DASH}"
"""Text for a figure that has no value. The value zero has another text."""

VERDICTS = {
    Verdict.FAILING: "Failing",
    Verdict.BLIND: "Blind",
    Verdict.DEGRADED: "Degraded",
    Verdict.WARMING_UP: "Warming up",
    Verdict.QUIET: "Quiet",
    Verdict.OK: "OK",
}
"""Verdict -> its word on the page; the worst verdict is first."""

SHOWN = {NOT_WATCHED: "Not watched"} | {
    verdict.value: word for verdict, word in VERDICTS.items()
}

_REASONS = {
    "warming_up": "only just started",
    "tap_hole": "the taps were interrupted",
    "no_records": "no records are coming in",
    "audit_incomplete": "the audit found that the mirror lacks messages of {window}",
    "lost": "messages were lost in {window}",
    "undelivered": "at least one participant did not receive all messages in {window}",
    "unacknowledged": "messages were not acknowledged in {window}",
    "recovering": "messages were missing in {window}",
    "repair_expired": "repair requests were not answered in {window}",
    "bloom_saturated": "a bloom filter was too full in {window}",
    "unanswered": "requested messages did not arrive in {window}",
    "quiet": "no messages in {window}",
    "no_senders": "nothing amiss in {window}, but acknowledgement is unknown because "
    "frames contain no sender",
    "ok": "nothing amiss in {window}",
    "stopped": "the monitor did not run",
    "behind": "the monitor lagged behind",
    "no_answer": "Kafka did not answer",
    "no_topic": "the topic did not exist",
    "forgotten": "it had ended",
}
"""Code of a verdict's reason -> the reason in words. `{window}` stands for the window
that the verdict covers."""

LONGEST = 1_000
"""Maximum number of characters of an untrusted text on a page."""

_NAME = 40

_DAY_MS = 86_400_000


def reason(code: str, window_ms: int) -> str:
    """Return a verdict's reason in words.

    If the code is unknown, return the code with spaces instead of underscores.
    `window_ms` is the length of the window that the verdict covers.
    """
    text = _REASONS.get(code)
    if text is None:
        return code.replace("_", " ")
    return text.format(window=lately(window_ms))


def past_reason(code: str) -> str:
    """Return an earlier verdict's reason in words; omit the window of the verdict."""
    text = _REASONS.get(code, code.replace("_", " "))
    return re.sub(r" (in|of) \{window\}", "", text)


def lately(window_ms: int) -> str:
    """Return words for a window that ends now, such as "the last 10 min"."""
    return f"the last {duration(window_ms)}"


def short(channel: str) -> str:
    """Return a channel id in one line, cut to about 40 characters; see `whole`."""
    return whole(shorten(channel, _NAME))


def bounded(text: str) -> str:
    """Return an untrusted text in one line, shortened to `LONGEST` characters."""
    return whole(shorten(text, LONGEST))


def whole(text: str) -> str:
    """Return an untrusted text in one line, not shortened; quote a blank text."""
    line = printable(text)
    return line if line.strip() else f"\N{LEFT DOUBLE QUOTATION MARK}{line}”"


def share(part: int, of: int, decimals: int = 0) -> str:
    """Return a share in percent, rounded down. 100 % means that `part` equals `of`."""
    if not of:
        return NOTHING
    if part == of:
        return "100 %"
    scale = 10**decimals
    return f"{100 * scale * part // of / scale:.{decimals}f} %"


def percent(ratio: float) -> str:
    """Return a ratio in percent, with at most 6 significant digits."""
    return f"{100 * ratio:.6g} %"


def small_ratio(ratio: float | None) -> str:
    """Return a ratio that is often close to zero, in percent.

    The text has at most two significant digits.
    """
    if ratio is None:
        return NOTHING
    if not ratio:
        return "0 %"
    return percent(float(f"{ratio:.2g}")) if ratio >= 1e-6 else "< 0.0001 %"


def rounded(value: float | None) -> str:
    """Return a number without decimals."""
    return NOTHING if value is None else f"{value:,.0f}"


def duration(milliseconds: int) -> str:
    """Return a duration in minutes if it is a whole number of them, else in seconds."""
    minutes, rest = divmod(milliseconds, 60_000)
    if minutes and not rest:
        return f"{minutes} min"
    return f"{milliseconds / 1000:,g} s"


def percentile(histogram: Histogram, percent: int) -> str:
    """Return the upper bound of the bucket that contains a percentile."""
    if not histogram.count:
        return NOTHING
    bound_ms = histogram.percentile_ms(percent)
    if bound_ms is None:
        return f"> {duration(BUCKETS_MS[-1])}"
    return f"≤ {duration(bound_ms)}"


def seconds(value: float | None) -> str:
    """Return seconds with one decimal."""
    return NOTHING if value is None else f"{value:,.1f} s"


def age(milliseconds: int) -> str:
    """Return a duration in the largest unit that it contains at least twice."""
    for unit_ms, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min")):
        if milliseconds >= 2 * unit_ms:
            return f"{milliseconds // unit_ms:,} {unit}"
    return f"{max(milliseconds, 0) // 1000} s"


def more_than(value: float) -> str:
    """Return "over N s" for seconds.

    N is rounded down to a multiple of ten, so that the text rarely changes.
    """
    return f"over {int(value // 10) * 10:,} s"


def no_answer(kafka: Freshness) -> str:
    """Return a clause that states since when Kafka has not answered."""
    if kafka.is_awaited:
        return f"Kafka has not answered since the start at {utc(kafka.asked_ms)}"
    return f"Kafka has not answered since {utc(kafka.answered_ms)}"


def topic_missing(missing: MissingTopic) -> str:
    """Return a clause that states since when the topic has been missing."""
    return f"Topic {missing.topic} has been missing since {utc(missing.since_ms)}"


TOPIC_REMEDY = (
    "recreate the topic; --on-lost-records determines how the job then continues "
    "(docs/topics.md, A recreated topic)"
)


def next_minute_ms(unix_ms: int) -> int:
    """Return the start of the next minute, Unix ms.

    Use it for the end of a period that a text shows without seconds. Otherwise, the
    time in the text would be too early.
    """
    return (unix_ms // 60_000 + 1) * 60_000


def since(unix_ms: int, clock_ms: int) -> str:
    """Return an event time as "HH:MM UTC".

    If the date of `clock_ms` is another one, return the result of `utc`, with the date.
    """
    if unix_ms // 86_400_000 == clock_ms // 86_400_000:
        return f"{time_of_day(unix_ms)} UTC"
    return utc(unix_ms)


def moment(unix_ms: int, clock_ms: int) -> str:
    """Return an event time as "HH:MM:SS", in UTC.

    If the date of `clock_ms` is another one, return the result of `utc`, with the date.
    """
    if unix_ms // _DAY_MS == clock_ms // _DAY_MS:
        return clock_time(unix_ms)
    return utc(unix_ms)


def utc(unix_ms: int | None) -> str:
    """Return an event time, Unix ms, as date and time in UTC; a dash for None and 0."""
    return utc_time(unix_ms) if unix_ms else NOTHING
