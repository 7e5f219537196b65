"""``sds-monitor plan what-if``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import click
from click.core import ParameterSource

from sds_core.text import shown
from streaming.cli import commands
from streaming.cli.plan_options import (
    BASE,
    MEASURED,
    Changes,
    Question,
    api_option,
    history_option,
    html_option,
    nearest_source,
    tables_or_json_option,
)
from streaming.cli.settings import Panel, setting
from streaming.cli.values import EXISTING_FILE

_CHANGED = "changed"
_MOST_VARIANTS = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


def _changes_of(flag: str, texts: Iterable[str]) -> Changes:
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


def _variants_of(sets: Iterable[str], variants: Iterable[str]) -> dict[str, Changes]:
    """Return the changes of each variant, by name.

    `sets` are the values of ``--set``, which together are the first variant. Each of
    `variants` is a value of ``--variant``.
    """
    named: dict[str, Changes] = {}
    if changes := _changes_of("--set", sets):
        named[_CHANGED] = changes
    for text in variants:
        name, colon, rest = text.partition(":")
        if not colon or not _NAME.fullmatch(name):
            message = f"--variant is {shown(text)}: use NAME:KEY=VALUE,KEY=VALUE"
            raise click.UsageError(message)
        if name in (*named, BASE, MEASURED):
            message = f"--variant {name}: this name is in use; give another name"
            raise click.UsageError(message)
        named[name] = _changes_of("--variant", rest.split(","))
    if len(named) > _MOST_VARIANTS:
        message = (
            f"{len(named)} variants are given, but at most {_MOST_VARIANTS} are allowed"
        )
        raise click.UsageError(message)
    return named


@commands.command(
    "what-if",
    "sds-monitor plan what-if --history ./state/history "
    "--channel my-channel --set participants=2x --set messages_per_day=2x",
)
@history_option
@api_option
@setting(
    "--channel",
    panel=Panel.SOURCE,
    show_default="the only one",
    help="The measured channel.",
)
@setting(
    "--plan",
    type=EXISTING_FILE,
    metavar="FILE",
    panel=Panel.SOURCE,
    help="TOML file that describes the channel. If --plan is given, the command "
    "reads no history.",
)
@setting(
    "--assume",
    multiple=True,
    metavar="KEY=VALUE",
    panel=Panel.FORECAST,
    help="Channel setting that the history does not contain, and its value. "
    "Repeatable.",
)
@setting(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    panel=Panel.FORECAST,
    help="Setting to change, and its new value; 2x doubles the value. Repeatable.",
)
@setting(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME:KEY=VALUE,…",
    panel=Panel.FORECAST,
    help="Name of a further variant, and the settings that it changes. Repeatable.",
)
@setting(
    "--seeds",
    type=click.IntRange(2, 1_000),
    default=10,
    panel=Panel.FORECAST,
    help="Number of simulations of each variant.",
)
@tables_or_json_option
@html_option
def what_if_command(
    history: Path | None,
    api: str | None,
    channel: str | None,
    plan: Path | None,
    assume: tuple[str, ...],
    sets: tuple[str, ...],
    variants: tuple[str, ...],
    seeds: int,
    as_json: bool,
    html: Path | None,
) -> None:
    """Compare a channel with variants of its settings.

    For the channel and each variant, the command prints figures on bytes, delivery,
    acknowledgement, recovery and repair. It also prints the used share of the rate
    limit, and how fast a new filter fills. The command reads the description of the
    channel from a history or from a TOML file. Some figures are computed by formulas.
    Others are simulated, and have 95 % intervals. The command needs the Python extra
    `plan`.
    """
    from streaming.cli.actions.plan_what_if import print_what_if

    source = None
    context = click.get_current_context()
    given = [
        name
        for name in ("history", "api", "channel")
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if plan is not None and given:
        message = f"--plan describes the channel: omit --{given[0]}"
        raise click.UsageError(message)
    if plan is None:
        # The figures need a week of history, and the hour before that week: 8 days.
        source = nearest_source(history, api, None, channel, 8)
    question = Question(
        source,
        plan,
        _changes_of("--assume", assume),
        _variants_of(sets, variants),
        seeds,
    )
    print_what_if(question, as_json, html)
