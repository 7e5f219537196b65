"""Follows the cursors of a store from page to page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from connectors.waku_rest.errors import BadAnswer

ReadPage = Callable[[bytes | None], Awaitable[bytes | None]]
"""Reads the page at a cursor, None for the first; returns the cursor to the next."""


async def follow(
    read_page: ReadPage, node: str, is_ending: Callable[[], bool] = lambda: False
) -> bool:
    """Read page after page.

    Args:
        read_page: Reads one page.
        node: URL of the node, for errors.
        is_ending: Asked before each page whether to stop.

    Returns:
        Whether the last page was read.

    Raises:
        BadAnswer: The cursors lead in a circle.
    """
    cursor: bytes | None = None
    cursors: set[bytes] = set()
    while not is_ending():
        cursor = await read_page(cursor)
        if cursor is None:
            return True
        if cursor in cursors:
            raise BadAnswer(node, "a reading of the store", "its cursors repeat")
        cursors.add(cursor)
    return False
