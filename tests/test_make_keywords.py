"""Counting what a document demands, on texts of our own."""

from __future__ import annotations

import pytest

from docs.make_keywords import Counted, counted, sections, with_marks

LISTED = "MUST, MUST NOT, REQUIRED, SHALL, SHALL NOT, SHOULD, SHOULD NOT, RECOMMENDED,"
LISTED += " MAY, and OPTIONAL say what binds."


@pytest.mark.parametrize(
    ("text", "keywords", "items"),
    [
        ("A cup MUST be clean and MUST NOT leak.", {"MUST": 1, "MUST NOT": 1}, 0),
        ("It must be warm; MUSTARD is no keyword.", {}, 0),
        ("Tea:\n- is hot\n- is brown\n", {}, 2),
        ("Tea MUST be:\n- hot\n- brown\n", {"MUST": 1}, 0),
        ("Tea:\n- MAY be hot\n- is brown\n", {"MAY": 1}, 1),
        ("1. Boil:\n   - water\n   - no milk\n2. Pour\n", {}, 3),
        ("1. Ask:\n   a. who\n   b. if so:\n     - pour\n     - stir\n", {}, 3),
        ("Tea MUST:\n- be hot\n- be one of:\n- green\n- black\n", {"MUST": 1}, 0),
        ("- Tea is:\n- hot\n- brown\n- Cups MUST be:\n- clean\n", {"MUST": 1}, 2),
        ("1. Tea is hot.\n2. Cups:\nThey MUST be.\n3. Pots are.\n", {"MUST": 1}, 2),
        ("1. Cups MUST be:\n- clean\n2. Pots are old.\n", {"MUST": 1}, 1),
        ("Rest - as a dash, 2 - 1 = 1 and 2 * 3.\nNext line.\n", {}, 0),
        ("Tea MUST: * be hot * be brown. It is: 1. **Leaf** - dry 2. **Cup**", None, 2),
        ("Kinds: - **Green**: 10 - 20 s - `black`: longer", {}, 2),
        (" - A cup. - When full, a pot - Or two. 2. A jug.", {}, 3),
        ("x" * 400 + ". - A cup. - A pot.\nPicture - Of both.\n", {}, 2),
    ],
    ids=[
        "negated",
        "capitals",
        "items",
        "bound by the sentence before",
        "with a keyword",
        "items below",
        "letters",
        "bound without indentation",
        "items below without indentation",
        "numbered item with another line",
        "number after items below",
        "no items",
        "without line breaks",
        "dashes without line breaks",
        "sentences without line breaks",
        "long line among others",
    ],
)
def test_keywords_and_unbound_items_are_counted(
    text: str, keywords: dict[str, int] | None, items: int
) -> None:
    """Of list items only those at the bottom that no keyword binds."""
    expected = {"MUST": 1} if keywords is None else keywords
    assert counted(text) == Counted(expected, items)


@pytest.mark.parametrize("between", [" ", "\n"])
def test_text_is_split_at_headings(between: str) -> None:
    """With numbers, after other headings and without code."""
    parts = ["# Tea", "## 1. Cups (all)", "They", "```x", "# MUST", "```", "hold."]
    parts += ["### Pot", "One MAY.", "## Words", LISTED]
    text = between.join(parts)
    found = sections(text, ["Cups", "Pot"])
    assert [one.split() for one in found] == [
        ["(all)", "They", "hold."],
        ["One", "MAY."],
    ]


def test_headings_may_repeat() -> None:
    """Each of them is found, in order."""
    text = "# Tea\n## Kinds\nOne MAY.\n# Pots\n## Kinds\nTwo MUST.\n"
    assert sections(text, ["Kinds", "Kinds"]) == ["\nOne MAY.\n", "\nTwo MUST.\n"]


def test_descriptions_in_yaml_are_list_items() -> None:
    """The rest of a code block, and of other ones, counts nothing."""
    yaml = 'tea:\n  type: MAY\n  description: "It MUST be hot."\n'
    text = f'## Tea\n```yaml\n{yaml}pot:\n  description: "Old: 1."\n```\n'
    text += '```json\n{description: "MUST"}\n```\n'
    assert [counted(one) for one in sections(text, ["Tea"])] == [({"MUST": 1}, 1)]


def test_dates_of_changes_between_lines_are_left_out() -> None:
    """They are of the page, and would end a list."""
    text = "## Tea\nIt MUST be:\n- hot\n2025-10-17 13:44:03 +11:00\n- brown\n"
    assert [counted(one).items for one in sections(text, ["Tea"])] == [0]


def test_keywords_below_a_heading_without_rules_are_an_error() -> None:
    """The table would lack them."""
    with pytest.raises(ValueError, match="there are keywords below 'Pot It MUST"):
        sections("## Cups It MAY. ## Pot It MUST.", ["Cups"])


def test_the_sentence_that_lists_the_keywords_is_not_counted() -> None:
    """Also where a section with rules begins with it."""
    (text,) = sections(f"## Cups\n{LISTED} They MUST hold.", ["Cups"])
    assert counted(text).keywords == {"MUST": 1}


def test_headings_without_marks_are_whole_lines() -> None:
    """Words within a line are none."""
    text = with_marks("Tea\nOur Cups MAY.\nCups\nThey hold.\n", ["Tea", "Cups"])
    assert [one.split() for one in sections(text, ["Tea", "Cups"])] == [
        ["Our", "Cups", "MAY."],
        ["They", "hold."],
    ]


@pytest.mark.parametrize("text", ["Tea pot", "Tea\nTea"])
def test_heading_that_is_not_one_line_is_an_error(text: str) -> None:
    """The document is another one."""
    with pytest.raises(ValueError, match=r"'Tea' is [02] lines"):
        with_marks(text, ["Tea"])


def test_missing_heading_is_an_error() -> None:
    """Another version of the document may have renamed it."""
    with pytest.raises(ValueError, match="no heading 'Pot' after 'Cups'"):
        sections("## Cups It MAY.", ["Cups", "Pot"])
