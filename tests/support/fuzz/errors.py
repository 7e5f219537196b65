"""What must be true of the error with which a decoder refuses an input."""

from __future__ import annotations

from pathlib import Path

_MOST_CHARACTERS = 2_000


def check_text(
    text: str, path: Path | None = None, most_characters: int = _MOST_CHARACTERS
) -> None:
    """Check the text of an error: one line, not too long, without control characters.

    Args:
        text: The text.
        path: File that it must name; None if it need not name one.
        most_characters: Length that it may have.
    """
    assert text
    assert len(text) <= most_characters
    assert text.isprintable(), text
    assert path is None or str(path) in text
