"""Keys of the rows between source, stateful operator and sink.

The key of a view is ``<prefix of its kind>:<name>`` (`Kind.key`).
"""

from __future__ import annotations

CLOCK_KEY = "clock:"
"""Key of the row that carries the admission time of a batch. It has no view."""
