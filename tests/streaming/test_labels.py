"""Labels never change once a channel has one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streaming.damage import DamagedCheckpoint
from streaming.ledger.labels import EXTRA_LABELS, MAX_LABEL_CHARACTERS, LabelLedger
from tests.support.streaming.ledger import ledger_in


def labels(directory: Path, budget: int, prefix: str = "sds") -> LabelLedger:
    """The labels of a kind."""
    return LabelLedger(ledger_in(directory), prefix, budget)


def test_labels_are_given_while_the_budget_lasts(tmp_path: Path) -> None:
    """Later channels have none, in this process and the next."""
    ledger = labels(tmp_path, 2)
    ledger.admit(["b"])
    ledger.admit(["a", "c", "b"])
    assert ledger.labels == ("b", "a")
    again = labels(tmp_path, 2)
    again.admit(["c"])
    assert again.labels == ("b", "a")


def test_smaller_budget_removes_no_label(tmp_path: Path) -> None:
    """An exported counter must never fall."""
    labels(tmp_path, 2).admit(["a", "b"])
    assert labels(tmp_path, 1).labels == ("a", "b")


def test_very_long_id_gets_no_label(tmp_path: Path) -> None:
    """A stranger's channel of a megabyte stays in ``other``."""
    ledger = labels(tmp_path, 5)
    ledger.admit(["x" * (MAX_LABEL_CHARACTERS + 1), "y" * MAX_LABEL_CHARACTERS])
    assert ledger.labels == ("y" * MAX_LABEL_CHARACTERS,)


def test_id_that_looks_like_a_labelled_id_gets_no_label(tmp_path: Path) -> None:
    """A label shows hidden characters as escapes, and series must differ."""
    hidden, written = "a\x01", r"a\x01"
    ledger = labels(tmp_path, 5)
    ledger.admit([hidden, written, "b"])
    assert ledger.labels == (hidden, "b")
    ledger.admit([written])
    assert ledger.labels == (hidden, "b")


def test_equal_labels_of_an_earlier_release_are_not_read(tmp_path: Path) -> None:
    """The name that got the label first keeps it."""
    ledger = ledger_in(tmp_path)
    stored = json.dumps(["c", r"a\x01", "a\x01", "b"])
    ledger.write("INSERT INTO labels VALUES (?, ?)", "sds", stored)
    assert LabelLedger(ledger, "sds", 5).labels == ("c", r"a\x01", "b")


def test_budget_of_zero_gives_no_label(tmp_path: Path) -> None:
    """All channels are then exported as ``other``."""
    ledger = labels(tmp_path, 0)
    ledger.admit(["a"])
    assert ledger.labels == ()


def test_order_of_first_sight_survives_a_restart(tmp_path: Path) -> None:
    """In any order of names, with missing channels."""
    labels(tmp_path, 3).admit(["west", "east"])
    again = labels(tmp_path, 3)
    again.admit(["east", "north", "south"])
    assert again.labels == ("west", "east", "north")


def test_wish_overrides_the_budget_and_comes_first(tmp_path: Path) -> None:
    """A refused name gets no label, even within the budget."""
    wishes = {"b": True, "d": False}
    ledger = labels(tmp_path, 1)
    ledger.admit(["a", "b"], wishes.get)
    assert ledger.labels == ("b",)
    ledger = labels(tmp_path, 0, "none")
    ledger.admit(["a", "b", "c", "d"], wishes.get)
    assert ledger.labels == ("b",)
    ledger = labels(tmp_path, 9, "many")
    ledger.admit(["d", "e"], wishes.get)
    assert ledger.labels == ("e",)


def test_number_of_wished_labels_is_limited(tmp_path: Path) -> None:
    """Strangers may choose names that match an operator's pattern."""
    ledger = labels(tmp_path, 1)
    ledger.admit((f"room-{n}" for n in range(2 * EXTRA_LABELS)), lambda name: True)
    assert len(ledger.labels) == 1 + EXTRA_LABELS


@pytest.mark.parametrize("content", ["[1,null]", '["a"', "", '{"a":1}', "null"])
def test_other_content_is_refused_with_its_remedy(tmp_path: Path, content: str) -> None:
    """Labels that were lost would move channels into ``other``."""
    with ledger_in(tmp_path).transaction() as connection:
        connection.execute("INSERT INTO labels VALUES ('sds', ?)", (content,))
    with pytest.raises(DamagedCheckpoint, match="labels given so far"):
        labels(tmp_path, 1)


def test_place_of_a_forgotten_channel_goes_to_a_new_one(tmp_path: Path) -> None:
    """Oldest first, from a start on. One in ``other`` stays there at any start."""
    labels(tmp_path, 2).admit(["a", "b", "other-1"])
    for _ in range(2):
        ledger = labels(tmp_path, 2)
        ledger.admit(["other-1"])
        ledger.vacate({"other-1"})
        assert ledger.labels == ("a", "b")
    ledger.admit(["c"])
    assert ledger.labels == ("b", "c")
    ledger.admit(["b", "d"])
    assert ledger.labels == ("b", "c")
    assert labels(tmp_path, 2).labels == ("b", "c")


def test_table_and_smaller_budget_decide_on_free_places_too(tmp_path: Path) -> None:
    """A place beyond the budget is not given again."""
    ledger = labels(tmp_path, 1)
    ledger.admit(["wanted", "usual"], lambda name: name == "wanted" or None)
    ledger.admit(["also wanted"], lambda _: True)
    ledger.vacate({"also wanted"})
    ledger.admit(["unwanted"], lambda _: False)
    ledger.admit(["new"])
    assert ledger.labels == ("wanted", "also wanted")
    ledger.admit(["asked for"], lambda _: True)
    assert ledger.labels == ("wanted", "also wanted", "asked for")


def test_labels_above_the_limit_do_not_hold_free_places(tmp_path: Path) -> None:
    """As many labels end as are needed for the limit, and only for a name that fits."""
    labels(tmp_path, 3).admit(["a", "b", "c"])
    ledger = labels(tmp_path, 3)
    ledger.admit(["wanted", "too"], lambda _: True)
    ledger.vacate({"a", "wanted", "too"})
    ledger.admit(["new"])
    assert ledger.labels == ("a", "b", "c", "wanted", "too")
    ledger = labels(tmp_path, 3)
    ledger.vacate({"wanted", "too"})
    ledger.admit(["unwanted"], lambda _: False)
    ledger.admit(["new", "newer"])
    assert ledger.labels == ("wanted", "too", "new")
