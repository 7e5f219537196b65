"""Undecodable records of a partition by reason (docs/figures.md, 1)."""

from __future__ import annotations

from sds_core.observer.dead_letter_view import (
    BLOB_VERSION,
    DeadLetter,
    DeadLetterDigest,
    DeadLetterView,
)

LETTERS = [
    DeadLetter(0, 4, "protobuf_error"),
    DeadLetter(0, 5, "no_channel"),
    DeadLetter(0, 9, "protobuf_error"),
]


def test_letters_are_counted_by_reason() -> None:
    """Over all digests and batches."""
    view = DeadLetterView()
    view.apply([DeadLetterDigest(LETTERS[:2]), DeadLetterDigest(LETTERS[2:])], 0)
    view.apply([], 5)
    assert view.totals.by_reason == {"protobuf_error": 2, "no_channel": 1}


def test_letters_are_passed_on_once() -> None:
    """In order; the next call returns only new ones."""
    view = DeadLetterView()
    assert view.apply([DeadLetterDigest(LETTERS[:2])], 0) == LETTERS[:2]
    assert view.apply([], 5) == []
    assert view.apply([DeadLetterDigest(LETTERS[2:])], 6) == LETTERS[2:]


def test_counts_continue_from_the_blob() -> None:
    """Letters that were returned before are not returned again."""
    view = DeadLetterView()
    view.apply([DeadLetterDigest(LETTERS)], 0)
    again = DeadLetterView.from_blob(BLOB_VERSION, view.to_blob())
    assert again.apply([DeadLetterDigest(LETTERS[:1])], 0) == LETTERS[:1]
    assert again.totals.by_reason == {"protobuf_error": 3, "no_channel": 1}


def test_clock_changes_nothing() -> None:
    """The view has no deadline."""
    view = DeadLetterView()
    view.apply([DeadLetterDigest(LETTERS)], 0)
    assert view.next_deadline_ms is None
