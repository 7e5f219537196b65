"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime


def shown_time(unix_ms: int) -> str:
    """Return a time as ISO 8601 text in UTC, to the millisecond.

    Args:
        unix_ms: Unix ms. A time outside the years 1 to 9999 is printed in
            milliseconds.
    """
    try:
        whole = datetime.fromtimestamp(unix_ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{unix_ms} ms"
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{unix_ms % 1000:03}Z"
