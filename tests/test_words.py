"""The sentences of the product, and the rules for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.sentences import (
    KINDS,
    Block,
    Sentence,
    comment_blocks,
    docstring_blocks,
    draw,
    error_blocks,
    html_blocks,
    markdown_blocks,
    sentences,
    string_blocks,
)
from docs.words import check

ROOT = Path(__file__).parents[1]

BROKEN = {
    "Terms": "The peer is told what the tea costs.",
    "SentenceLength": "The tea is " + "very " * 40 + "hot.",
    "Clauses": "The cup that holds the tea that cools is one that breaks.",
    "ThereIs": "There is no tea in the pot.",
    "DoubleNegation": "It is not unusual that tea cools.",
    "Passive": "It is known that tea cools.",
    "Inversion": "Of each cup the pot counts two.",
    "Participle": "Asked twice, the pot pours tea again.",
    "Latin": "It accepts leaves, e.g. green ones.",
    "Chatty": "Simply pour the tea.",
}
"""Rule -> a sentence that breaks this one only."""


@pytest.mark.needs("vale")
def test_each_rule_finds_the_sentence_that_breaks_it() -> None:
    """Its name and place are returned; a good sentence, and code, break nothing."""
    rules = {path.stem for path in ROOT.glob("tools/vale/styles/SdsMonitor/*.yml")}
    assert rules == set(BROKEN)
    texts = ["The pot pours tea, and a cup receives it.", *BROKEN.values()]
    texts.append("The command `told --anew` pours tea.")
    drawn = [Sentence("tea.md", line, text) for line, text in enumerate(texts, 1)]
    broken = [(sentence.line, rule) for sentence, rule, _ in check(drawn)]
    assert broken == list(enumerate(BROKEN, 2))


MODULE = '''"""Pours tea into cups."""

LIMIT = 3
"""Cups that a pot fills."""


def pour(cups: int) -> None:
    """Pour tea into some cups.

    It pours no tea into a cup
    that is full. The pot is full.

    Args:
        cups: How many cups are filled
            at the same time.

    Returns:
        The tea that the pot
        still holds.

    Raises:
        ValueError: The pot is empty now.

    1. Fill a cup with tea.
    2. Put it on the table.
    """
    # A full cup is hot, so
    # the pot waits for it.
    message = f"{cups} cups are too many"
    raise ValueError(message)
'''


@pytest.mark.parametrize(
    ("blocks", "lines"),
    [
        (
            docstring_blocks(MODULE),
            {
                1: "Pours tea into cups.",
                4: "Cups that a pot fills.",
                8: "Pour tea into some cups.",
                10: "It pours no tea into a cup that is full.",
                11: "The pot is full.",
                14: "How many cups are filled at the same time.",
                18: "The tea that the pot still holds.",
                22: "The pot is empty now.",
                24: "Fill a cup with tea.",
                25: "Put it on the table.",
            },
        ),
        (
            comment_blocks(MODULE),
            {27: "A full cup is hot, so the pot waits for it."},
        ),
        (string_blocks(MODULE), {29: "{} cups are too many"}),
        (error_blocks(MODULE), {29: "{} cups are too many"}),
        (
            markdown_blocks(
                "# A title of four words\n- Pour the tea now.\n\n```sh\ntea is in code"
                "\n```\n| cup | the cup is full |\n"
            ),
            {2: "Pour the tea now.", 7: "the cup is full"},
        ),
        (
            html_blocks(
                "<p>\n  The {{ pot }} is\n  <b>not</b> full.</p>\n<p>Tea</p>"
                "{% if hot %}The tea is hot.\n{% else %}The tea is cold.{% endif %}"
            ),
            {2: "The {} is not full.", 4: "The tea is hot.", 5: "The tea is cold."},
        ),
    ],
    ids=["docstrings", "comments", "strings", "errors", "markdown", "html"],
)
def test_sentences_have_their_lines(blocks: list[Block], lines: dict[int, str]) -> None:
    """Text of fewer than four words, code and headings are no sentences."""
    found = {line: text for _, line, text in sentences("tea", iter(blocks))}
    assert found == lines


def test_draw_repeats_with_its_seed(tmp_path: Path) -> None:
    """Each kind has the same number of sentences, of which none is drawn twice."""
    (tmp_path / "connectors" / "web").mkdir(parents=True)
    (tmp_path / "dashboards" / "runbooks").mkdir(parents=True)
    (tmp_path / "streaming" / "cli").mkdir(parents=True)
    lines = [f"Cup {name} is full now.\n" for name in ("one", "two", "three", "four")]
    for path in ("README.md", "dashboards/runbooks/Tea.md"):
        (tmp_path / path).write_text("".join(lines))
    help_ = "".join(f"Option(help={line[:-1]!r})\n" for line in lines)
    for path in ("streaming/cli/tea.py", "connectors/web/tea.py", "dashboards/tea.py"):
        (tmp_path / path).write_text(help_)
    errors = "".join(f"log.error({line[:-1]!r})\n" for line in lines)
    (tmp_path / "streaming" / "tea.py").write_text(
        f'"""{lines[0]}{lines[1]}"""\n{errors}'
    )
    drawn = list(draw(tmp_path, 2 * len(KINDS), seed=35))
    assert [kind for kind, _ in drawn] == [kind for kind in KINDS for _ in range(2)]
    assert len(set(drawn)) == len(drawn)
    assert drawn == list(draw(tmp_path, 2 * len(KINDS), seed=35))
    assert drawn != list(draw(tmp_path, 2 * len(KINDS), seed=36))
