"""The compiled rules do what the same rules do interpreted."""

from __future__ import annotations

import pytest

from sds_core import compiled
from tests.support.forms import differing

pytestmark = pytest.mark.slow


@pytest.mark.skipif(compiled.find() is None, reason="the rules are not compiled")
def test_both_forms_write_the_same_states_and_reports() -> None:
    """To the byte, after every batch; `python -m tests.support.forms` compares more."""
    assert differing(minutes=200, frames=500, most=400) == []
