"""Figures in the words of the status page.

Channel ids come from strangers. `shown` makes one fit to stand in a line; escaping
for HTML is left to the template and the script.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sds_core.observer.histogram import BUCKETS_MS, Histogram
from sds_core.observer.verdict import Verdict

NOTHING = "\N{EN DASH}"
"""Stands where there is nothing to measure, which is not zero."""

VERDICTS = {
    Verdict.FAILING: "Failing",
    Verdict.BLIND: "Blind",
    Verdict.DEGRADED: "Degraded",
    Verdict.WARMING_UP: "Warming up",
    Verdict.QUIET: "Quiet",
    Verdict.OK: "OK",
}
"""Most troubled first: the order of the page."""

_REASONS = {
    "warming_up": "only just started",
    "tap_hole": "every tap has a hole in its records",
    "no_records": "no records are coming in",
    "audit_incomplete": "the audit found the mirror incomplete",
    "lost": "messages were lost",
    "unacknowledged": "not acknowledged in time",
    "recovering": "recovering missing messages",
    "repair_expired": "repair requests unanswered",
    "bloom_saturated": "bloom filter too full",
    "quiet": "no messages lately",
    "ok": "nothing amiss",
}

LONGEST = 1_000
"""Characters of a text of strangers that a page shows."""

_NAME = 40


def reason(code: str) -> str:
    """The reason of a verdict; one that this page does not know is shown as it is."""
    return _REASONS.get(code, code.replace("_", " "))


def shown(channel: str) -> str:
    """A channel id in one line of about 40 characters.

    Control characters and changes of text direction are written as escapes: they
    could otherwise make the line read as something else. Of a long id the end is
    kept too, since long ids often share their beginning.
    """
    return whole(_cut(channel, _NAME))


def bounded(text: str) -> str:
    """Text of strangers in one line, of a very long one beginning and end."""
    return whole(_cut(text, LONGEST))


def whole(text: str) -> str:
    """Text of strangers in one line, nothing left out; see `shown`."""
    plain = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )
    return plain if plain.strip() else f"\N{LEFT DOUBLE QUOTATION MARK}{plain}”"


def one_line(text: str) -> str:
    """Text with every run of white space, line ends included, as one space."""
    return " ".join(text.split())


def number(value: int) -> str:
    """12345 as "12,345"."""
    return f"{value:,}"


def counted(value: int, noun: str) -> str:
    """A number and a regular noun: "1 channel", "2 channels"."""
    return f"{number(value)} {noun}" + ("" if value == 1 else "s")


def share(part: int, of: int, decimals: int = 0) -> str:
    """A part of a whole in percent, rounded down: only all of it is 100 %."""
    if not of:
        return NOTHING
    if part == of:
        return "100 %"
    scale = 10**decimals
    return f"{100 * scale * part // of / scale:.{decimals}f} %"


def percent(ratio: float) -> str:
    """A ratio as somebody wrote it down, in percent."""
    return f"{100 * ratio:.6g} %"


def small_ratio(ratio: float | None) -> str:
    """A ratio that is mostly close to zero, in percent with two digits."""
    if ratio is None:
        return NOTHING
    return percent(float(f"{ratio:.2g}")) if ratio >= 1e-6 else "< 0.0001 %"


def rounded(value: float | None) -> str:
    """A number without decimals."""
    return NOTHING if value is None else f"{value:,.0f}"


def duration(milliseconds: int) -> str:
    """A duration in seconds, or in minutes if it is a whole number of them."""
    minutes, rest = divmod(milliseconds, 60_000)
    if minutes and not rest:
        return f"{minutes} min"
    return f"{milliseconds / 1000:,g} s"


def percentile(histogram: Histogram, percent: int) -> str:
    """What a histogram knows of a percentile: the upper bound of its bucket."""
    if not histogram.count:
        return NOTHING
    bound_ms = histogram.percentile_ms(percent)
    if bound_ms is None:
        return f"> {duration(BUCKETS_MS[-1])}"
    return f"≤ {duration(bound_ms)}"


def seconds(value: float | None) -> str:
    """Seconds with one decimal."""
    return NOTHING if value is None else f"{value:,.1f} s"


def age(milliseconds: int) -> str:
    """How long something lasts, in the largest unit that has two of it or more."""
    for unit_ms, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min")):
        if milliseconds >= 2 * unit_ms:
            return f"{milliseconds // unit_ms:,} {unit}"
    return f"{max(milliseconds, 0) // 1000} s"


def size(count_bytes: int) -> str:
    """Bytes in the unit that reads best, by powers of 1000."""
    value, unit = float(count_bytes), "B"
    for larger in ("kB", "MB", "GB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def more_than(value: float) -> str:
    """Seconds rounded down to tens: a sentence read aloud must not change each poll."""
    return f"over {int(value // 10) * 10:,} s"


def utc(unix_ms: int | None) -> str:
    """An event time, Unix ms, as UTC date and time; 0 and None are none.

    One outside the years that a date has is given as the number that it is.
    """
    return _formatted(unix_ms, "%Y-%m-%d %H:%M:%S UTC") if unix_ms else NOTHING


def time_of_day(unix_ms: int) -> str:
    """An event time, Unix ms, as hours and minutes in UTC; see `utc`."""
    return _formatted(unix_ms, "%H:%M")


def _formatted(unix_ms: int, form: str) -> str:
    try:
        time = datetime.fromtimestamp(unix_ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{unix_ms} ms"
    return f"{time:{form}}"


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    tail = most // 3
    return text[: most - tail - 1] + "…" + text[-tail:]
