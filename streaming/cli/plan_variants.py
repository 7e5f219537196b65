"""The input of `plan what-if`: a channel and its variants."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import click

from sds_core.text import shown
from streaming.cli.plan_options import PlanSource

BASE, MEASURED = "base", "measured"
_CHANGED = "changed"
_MOST_VARIANTS = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")

Changes = dict[str, str]
"""New values of a plan by key, as text."""


class Question(NamedTuple):
    """A measured channel or the file of a plan, and changes to it.

    `assumed` has the changes to the base. Each variant adds changes to the base, and
    each plan runs with each of the `seeds`.
    """

    source: PlanSource | None
    plan: Path | None
    assumed: Changes
    variants: dict[str, Changes]
    seeds: int


def changes_of(flag: str, texts: Iterable[str]) -> Changes:
    """Return the changes in the values of a flag.

    Raises:
        click.UsageError: A text is not of the form KEY=VALUE, or repeats a key.
    """
    changes: Changes = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key:
            message = f"{flag} is {shown(text)}: use KEY=VALUE"
            raise click.UsageError(message)
        if key in changes:
            message = f"{flag} has {shown(key)} twice: give one value"
            raise click.UsageError(message)
        changes[key] = value
    return changes


def variants_of(sets: Iterable[str], variants: Iterable[str]) -> dict[str, Changes]:
    """Return the changes of each variant; `sets` are the changes of the first variant.

    Raises:
        click.UsageError: A variant has a wrong form or a name that is taken.
    """
    named: dict[str, Changes] = {}
    if changes := changes_of("--set", sets):
        named[_CHANGED] = changes
    for text in variants:
        name, colon, rest = text.partition(":")
        if not colon or not _NAME.fullmatch(name):
            message = f"--variant is {shown(text)}: use NAME:KEY=VALUE,KEY=VALUE"
            raise click.UsageError(message)
        if name in (*named, BASE, MEASURED):
            message = f"--variant {name}: this name is in use, give another one"
            raise click.UsageError(message)
        named[name] = changes_of("--variant", rest.split(","))
    if len(named) > _MOST_VARIANTS:
        message = (
            f"{len(named)} variants are given, but at most {_MOST_VARIANTS} are allowed"
        )
        raise click.UsageError(message)
    return named
