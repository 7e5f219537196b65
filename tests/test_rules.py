"""The table of rules: every rule counted, shown by a test, and on the page."""

from __future__ import annotations

import functools
import re
from collections import Counter
from pathlib import Path

import pytest

from docs import make_rules
from docs.make_rules import (
    CountedSection,
    Keyword,
    Mutation,
    Rule,
    RuleMutation,
    Section,
)
from sds_core.message_channel import Profile
from sds_core.mvds.options import Options
from tests.support.rule_markers import Marker, markers

DOCUMENTS = make_rules.documents()
SECTIONS = [section for document in DOCUMENTS for section in document.sections]
COUNTED = [one for document in make_rules.keywords() for one in document.sections]
MARKERS = functools.cache(lambda: markers(Path(__file__).parent))
"""Those of all tests, which are read once."""

RULES = [rule for section in SECTIONS for rule in section.rules]


def test_sections_of_the_text_are_those_of_the_rules() -> None:
    """All of the documents, in their order."""
    assert [one.title for one in COUNTED] == [one.title for one in SECTIONS]
    files = [one.file for one in make_rules.keywords()]
    assert files == [one.file for one in DOCUMENTS]


@pytest.mark.parametrize(
    ("section", "text"),
    list(zip(SECTIONS, COUNTED, strict=True)),
    ids=[one.title for one in SECTIONS],
)
def test_rules_of_a_section_have_all_keywords_of_the_document(
    section: Section, text: CountedSection
) -> None:
    """And its list items without one; other statements are few and explained."""
    counts = section.counted()
    without = counts.pop(Keyword.RULE, 0) + counts.pop(Keyword.SUGGESTION, 0)
    assert counts == text.keywords
    assert without == text.items + section.prose
    assert section.about or not section.prose


def test_rules_that_share_a_keyword_count_once() -> None:
    """Rules with equal numbers differ only in the letter."""
    rules = (
        Rule(id="x-1a", keyword=Keyword.MUST, text="One."),
        Rule(id="x-1b", keyword=Keyword.MUST, text="Another."),
        Rule(id="x-2", keyword=Keyword.MAY, text="A third."),
    )
    section = Section(title="X", rules=rules)
    assert section.counted() == {"MUST": 1, "MAY": 1}


def test_rule_that_names_another_shares_its_keyword() -> None:
    """And a rule may be of several list items."""
    rules = (
        Rule(id="x-cup", keyword=Keyword.SHOULD, text="One."),
        Rule(id="x-pot", keyword=Keyword.SHOULD, text="Another.", shares="x-cup"),
        Rule(id="x-tea", keyword=Keyword.RULE, text="A third.", items=3),
    )
    section = Section(title="X", rules=rules)
    assert section.counted() == {"SHOULD": 1, "RULE": 3}


def test_rules_that_others_share_exist_and_have_the_keyword() -> None:
    """In the same section, and they share none themselves."""
    for section in SECTIONS:
        own = {one.id: one.keyword for one in section.rules if not one.shares}
        shared = [(one.shares, one.keyword) for one in section.rules if one.shares]
        assert [one for one in shared if one not in own.items()] == []


def test_rules_that_share_a_number_share_the_keyword() -> None:
    """They are one occurrence of the keyword in the document."""
    keywords: dict[str, set[str]] = {}
    for rule in RULES:
        number = re.sub(r"(?<=\d)[a-z]$", "", rule.id)
        keywords.setdefault(number, set()).add(rule.keyword)
    assert {n: k for n, k in keywords.items() if len(k) > 1} == {}


def test_ids_of_rules_are_unique() -> None:
    """An id identifies one rule."""
    assert [i for i, count in Counter(r.id for r in RULES).items() if count > 1] == []


def test_every_rule_is_covered_by_a_test() -> None:
    """A rule without a marker needs a reason in the file of rules."""
    named = {marker.rule_id for marker in MARKERS()}
    assert [r.id for r in RULES if not r.covered_by and r.id not in named] == []


def test_no_rule_has_both_tests_and_a_reason_for_none() -> None:
    """The reason is out of date once a test exists."""
    named = {marker.rule_id for marker in MARKERS()}
    assert [r.id for r in RULES if r.covered_by and r.id in named] == []


def test_markers_name_rules_that_exist() -> None:
    """A misspelt id would cover nothing."""
    known = {rule.id for rule in RULES}
    assert [marker for marker in MARKERS() if marker.rule_id not in known] == []


def test_options_named_in_notes_exist() -> None:
    """Notes send readers to options by name."""
    for prefix, options in (("Profile", Profile), ("Options", Options)):
        named = {
            option
            for rule in RULES
            for option in re.findall(rf"`{prefix}\.(\w+)", f"{rule.text} {rule.note}")
        }
        assert named
        assert sorted(option for option in named if not hasattr(options, option)) == []


def test_table_of_rules_is_up_to_date() -> None:
    """After a change of a rule or marker run ``python -m docs.make_rules``."""
    assert make_rules.PAGE.read_text(encoding="utf-8") == make_rules.page()


def found_in(directory: Path, program: str) -> list[Marker]:
    """The markers of one file of tests."""
    tests = directory / "tests" / "sub"
    tests.mkdir(parents=True)
    (tests / "test_sample.py").write_text(program)
    return markers(directory / "tests")


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("@pytest.mark.rule('a-1', 'a-2')\ndef test_x(): ...", ["test_x"] * 2),
        (
            "@pytest.mark.slow\n@pytest.mark.rule('a-1')\n"
            "@pytest.mark.rule('a-2')\nasync def test_x(): ...",
            ["test_x"] * 2,
        ),
        (
            "@pytest.mark.rule('a-1')\nclass TestX:\n"
            "    @pytest.mark.rule('a-2')\n    def test_y(self): ...",
            ["TestX", "TestX.test_y"],
        ),
        (
            "class TestX:\n    pytestmark = pytest.mark.rule('a-1', 'a-2')",
            ["TestX"] * 2,
        ),
        (
            "pytestmark = [pytest.mark.slow, pytest.mark.rule('a-1', 'a-2')]",
            [""] * 2,
        ),
        (
            "TestX = Machine.TestCase\n"
            "TestX.pytestmark = [pytest.mark.rule('a-1', 'a-2')]",
            ["TestX"] * 2,
        ),
        (
            "@pytest.mark.parametrize('x', [\n"
            "    pytest.param(1, marks=pytest.mark.rule('a-1')),\n"
            "    pytest.param(2, marks=[pytest.mark.rule('a-2')]),\n"
            "])\ndef test_x(x): ...",
            ["test_x"] * 2,
        ),
    ],
    ids=["function", "several", "class", "in class", "file", "assigned", "parameter"],
)
def test_markers_are_found_wherever_pytest_allows_them(
    tmp_path: Path, program: str, expected: list[str]
) -> None:
    """Each gives its rules, test and file."""
    file = "tests/sub/test_sample.py"
    assert found_in(tmp_path, program) == [
        Marker("a-1", file, expected[0]),
        Marker("a-2", file, expected[1]),
    ]


@pytest.mark.parametrize(
    "program",
    [
        "@pytest.mark.slow('a-1')\ndef test_x(): ...",
        "def test_x():\n    'pytest.mark.rule(\"a-1\")'",
        "@rule(target=a)\ndef step(self): ...",
    ],
    ids=["other marker", "text", "hypothesis"],
)
def test_other_calls_are_no_markers(tmp_path: Path, program: str) -> None:
    """Only calls of pytest.mark.rule count."""
    assert found_in(tmp_path, program) == []


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("@pytest.mark.rule('a-1')\ndef helper(): ...", "helper is marked"),
        ("@pytest.mark.rule('a-1')\nclass Helper: ...", "Helper is marked"),
        ("@pytest.mark.rule(*IDS)\ndef test_x(): ...", "written out"),
        ("@pytest.mark.rule(1)\ndef test_x(): ...", "written out"),
    ],
    ids=["function", "class", "variable", "number"],
)
def test_misplaced_markers_are_refused(
    tmp_path: Path, program: str, message: str
) -> None:
    """A marker without a test or without text would cover nothing."""
    with pytest.raises(ValueError, match=message):
        found_in(tmp_path, program)


def test_timeouts_of_mutation_testing_count_as_found() -> None:
    """The percentage is of all mutants that were run."""
    run = Mutation(
        killed=1200, survived=300, timeout=100, command="mutate", date="2026-01-31"
    )
    assert make_rules.mutation_sentence(run) == (
        "Mutation testing on 2026-01-31 (`mutate`): 81% of 1,600 mutants were found, "
        "1,200 by a failing test and 100 by the time limit.\n"
    )


def test_mutants_of_rules_that_survived_are_counted() -> None:
    """The page does not hide them."""
    run = RuleMutation(9, 4, ("sds-send-1",), "mutate", "2026-01-31")
    assert make_rules.rule_mutation_sentence(run) == (
        "Of 9 changes (`docs/rules/mutants.toml`), each of which breaks one of 4 rules,"
        " the tests of that rule alone found 8 on 2026-01-31 (`mutate`).\n"
    )


def test_page_omits_mutation_testing_without_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence needs the result file."""
    result = tmp_path / "mutation.toml"
    monkeypatch.setattr(make_rules, "MUTATION", result)
    assert "Mutation testing" not in make_rules.page()
    result.write_text(
        "killed = 8\nsurvived = 2\ntimeout = 0\n"
        "command = 'mutate'\ndate = '2026-01-31'\n"
    )
    assert "Mutation testing on 2026-01-31 (`mutate`): 80% of 10" in make_rules.page()
