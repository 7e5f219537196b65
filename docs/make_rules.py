"""Writes docs/rules.md from docs/rules/: ``python -m docs.make_rules``."""

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum
from pathlib import Path

import msgspec

PAGE = Path(__file__).with_name("rules.md")
RULES = Path(__file__).with_name("rules")
KEYWORDS = RULES / "keywords.toml"
MUTATION = RULES / "mutation.toml"
RULE_MUTATION = RULES / "rule_mutation.toml"
ROOT = PAGE.parents[1]

_HEAD = """\
# Rules

Which rules do SDS, SDS-R, the Reliable Channel API, MVDS and WAKU2-SYNC have, and how are they followed here?

Made from `docs/rules/` by `.venv/bin/python -m docs.make_rules`; do not edit it by hand.

The page lists every rule for a [participant](participant.md), a [reliable channel](reliable-channel.md), an [MVDS node](mvds.md) or both sides of a [synchronisation](sync.md) in our own words, and what ours does differently or more precisely.
`git grep -w ID tests` finds the tests that show a rule; without one, the reason stands here.
MUST, SHOULD and MAY are RFC 2119 keywords; RULE is a statement without one (list item, formula, other requirement), SUGGESTION is advice.
A rule "of" another one shares its keyword.
A test compares the numbers of keywords with those of the documents.
"""  # noqa: E501 - one sentence per line


class Keyword(StrEnum):
    """Requirement level of a rule, such as MUST."""

    MUST = "MUST"
    MUST_NOT = "MUST NOT"
    SHOULD = "SHOULD"
    SHOULD_NOT = "SHOULD NOT"
    MAY = "MAY"
    RULE = "RULE"
    SUGGESTION = "SUGGESTION"


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule of a document.

    Attributes:
        id: number within its section, with a letter if rules share a keyword.
        keyword: keyword that the document uses.
        text: one sentence in our own words.
        note: explanation if the document cannot be followed, or leaves a choice.
        covered_by: reason why no test covers it; empty if tests do.
        shares: id of the rule whose keyword or list item it shares, if the ids do not
            tell.
        items: number of list items that say it.
    """

    id: str
    keyword: Keyword
    text: str
    note: str = ""
    covered_by: str = ""
    shares: str = ""
    items: int = 1


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One section of a document.

    Attributes:
        title: title in the document.
        heading: how the heading in the document begins, if not with the title.
        about: explanation of the counts, if they need one.
        prose: number of statements without a keyword that are no list items; `about`
            names them.
        rules: rules in the document's order.
    """

    title: str
    heading: str = ""
    about: str = ""
    prose: int = 0
    rules: tuple[Rule, ...] = msgspec.field(name="rule")

    def counted(self) -> Counter[Keyword]:
        """Return how often each keyword occurs in the rules; shared ones count once."""
        own = {_number(r.id): r for r in self.rules if not r.shares}
        counts: Counter[Keyword] = Counter()
        for rule in own.values():
            counts[rule.keyword] += rule.items
        return counts


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of one document.

    Attributes:
        title: heading on the page.
        file: name of the document's file.
        about: what has no rules.
        headings: lines of the file that are headings, if they have no marks.
        sections: sections with rules, in order.
    """

    title: str
    file: str
    about: str
    headings: tuple[str, ...] = ()
    sections: tuple[Section, ...] = msgspec.field(name="section")


class CountedSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a section's text has; `docs/make_keywords.py` counts it.

    Attributes:
        title: title of the section in the table of rules.
        keywords: how often each keyword occurs.
        items: list items that no keyword binds.
    """

    title: str
    keywords: dict[Keyword, int]
    items: int


class CountedDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a document's text has.

    Attributes:
        file: name of the document's file.
        sha256: SHA-256 of the file that was counted, in hex.
        sections: its sections with rules, in order.
    """

    file: str
    sha256: str
    sections: tuple[CountedSection, ...] = msgspec.field(name="section")


class _Keywords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    documents: tuple[CountedDocument, ...] = msgspec.field(name="document")


class Mutation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Result of mutation testing the participant: numbers of mutants.

    Attributes:
        killed: mutants with which a test failed.
        survived: mutants that no test detected.
        timeout: mutants stopped by the time limit; these count as detected.
        command: command that was run.
        date: date of the run, for example 2026-01-31.
    """

    killed: int
    survived: int
    timeout: int
    command: str
    date: str


class RuleMutation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Result of breaking rules one by one, with only the rule's own tests.

    Attributes:
        mutants: number of changes of the program.
        rules: number of rules that these break.
        survived: rule of each change that its tests did not notice.
        command: command that was run.
        date: date of the run, for example 2026-01-31.
    """

    mutants: int
    rules: int
    survived: tuple[str, ...]
    command: str
    date: str


def documents() -> tuple[Document, ...]:
    """Return the documents, SDS first.

    Raises:
        msgspec.ValidationError: A file lacks the fields above.
    """
    return tuple(
        msgspec.toml.decode((RULES / name).read_bytes(), type=Document)
        for name in (
            "sds.toml",
            "sds-r.toml",
            "reliable-channel.toml",
            "mvds.toml",
            "waku2-sync.toml",
        )
    )


def keywords() -> tuple[CountedDocument, ...]:
    """Return what was counted in the documents, SDS first."""
    return msgspec.toml.decode(KEYWORDS.read_bytes(), type=_Keywords).documents


def mutation() -> Mutation | None:
    """Return the last run of mutation testing; None if there is no file."""
    if not MUTATION.exists():
        return None
    return msgspec.toml.decode(MUTATION.read_bytes(), type=Mutation)


def rule_mutation() -> RuleMutation | None:
    """Return the last run of `docs/make_rule_mutation.py`; None if there is none."""
    if not RULE_MUTATION.exists():
        return None
    return msgspec.toml.decode(RULE_MUTATION.read_bytes(), type=RuleMutation)


def page() -> str:
    """Return the whole page."""
    parts = [_HEAD]
    if run := mutation():
        parts.append(mutation_sentence(run))
    if own := rule_mutation():
        parts.append(rule_mutation_sentence(own))
    for document in documents():
        parts.append(f"## {document.title}\n\n{document.about}\n")
        parts += map(_section, document.sections)
    return "\n".join(parts)


def mutation_sentence(run: Mutation) -> str:
    """Return the page's sentence about a run of mutation testing."""
    found = run.killed + run.timeout
    every = found + run.survived
    return (
        f"Mutation testing on {run.date} (`{run.command}`): {found / every:.0%} of "
        f"{every:,} mutants were found, {run.killed:,} by a failing test and "
        f"{run.timeout:,} by the time limit.\n"
    )


def rule_mutation_sentence(run: RuleMutation) -> str:
    """Return the page's sentence about rules that were broken one by one."""
    found = run.mutants - len(run.survived)
    return (
        f"Of {run.mutants} changes (`docs/rules/mutants.toml`), each of which breaks "
        f"one of {run.rules} rules, the tests of that rule alone found {found} on "
        f"{run.date} (`{run.command}`).\n"
    )


def _section(section: Section) -> str:
    keywords = {rule.keyword for rule in section.rules}
    shares = any(rule.shares for rule in section.rules)
    # A keyword that several rules have stands above them.
    common = len(keywords) == 1 and len(section.rules) > 1 and not shares
    head = f"All: {section.rules[0].keyword}.\n\n" if common else ""
    return f"### {section.title}\n\n{head}" + "".join(
        f"- `{rule.id}`{f' {rule.keyword}' * (not common)}"
        f"{f' of `{rule.shares}`' * bool(rule.shares)}: "
        f"{' '.join(filter(None, (rule.text, rule.note)))}"
        f"{f' (No test: {rule.covered_by})' * bool(rule.covered_by)}\n"
        for rule in section.rules
    )


def _number(rule_id: str) -> str:
    """Return a rule id without the letter of rules that share a keyword."""
    return re.sub(r"(?<=\d)[a-z]$", "", rule_id)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
