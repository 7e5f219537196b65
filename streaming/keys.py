"""Keys of the rows between source, stateful operator and sink, and rows of requests.

The key of a view is ``<prefix of its kind>:<name>`` (`Kind.key`). A digest is a packed
array, so it never equals one of the requests.
"""

from __future__ import annotations

CLOCK_KEY = "clock:"
"""Key of the row that carries the admission time of a batch. It has no view."""

FORGET = b"forget"
"""In place of a digest: the view is forgotten before the batch's records."""

REVIEW = b"review"
"""In place of a digest: the view moves to the admission time and sets its deadline."""
