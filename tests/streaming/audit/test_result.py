"""What an audit says of a mirror that was started later than the other side."""

from __future__ import annotations

import pytest

from sds_core.audit.result import AuditedMessage, AuditResult
from streaming.cli.actions.audit import _document, _lines

BEGIN_MS = 1_790_000_000_000
NS = 1_000_000


def result(*sent_ms: int, begin_ms: int | None = BEGIN_MS) -> AuditResult:
    """A mirror that lacks messages of these times, of ten."""
    missing = [AuditedMessage(one * NS, bytes(32)) for one in sent_ms]
    here = 10 - len(missing)
    return AuditResult(
        "store", 1, 2, here, 10, missing, [], 0, 0, mirror_begin_ms=begin_ms
    )


def test_messages_from_before_the_first_start_are_said_to_be_so() -> None:
    """The mirror cannot have heard them: the line says when it began."""
    found = result(BEGIN_MS - 5_000, BEGIN_MS - 1, BEGIN_MS)
    assert found.missing_before_begin == 2
    assert str(found) == (
        "3 missing here (2 from before the mirror's first record at "
        "2026-09-21T14:13:20.000Z), 0 missing there (7 messages here, 10 there)"
    )
    *_, hint, summary = _lines(found)
    assert hint == (
        "2 messages missing here from before the mirror's first record at "
        "2026-09-21T14:13:20.000Z: leave them out with --from 2026-09-21T14:13:20.000Z,"
        " or copy them with --fix"
    )
    assert summary == f"store: {found}"
    document = _document(found)
    assert document["missing_before_begin"] == 2
    assert document["mirror_begin_ms"] == BEGIN_MS
    assert document["is_complete"] is False


@pytest.mark.parametrize(
    "found",
    [
        result(BEGIN_MS),
        result(BEGIN_MS - 1, begin_ms=None),
        # Of a message that the store lists and does not give the time is not known.
        result(0),
    ],
)
def test_other_missing_messages_are_only_missing(found: AuditResult) -> None:
    """Nothing is said of a begin that explains nothing."""
    assert found.missing_before_begin == 0
    assert "first record" not in str(found)
    assert not any("--fix" in line for line in _lines(found))
