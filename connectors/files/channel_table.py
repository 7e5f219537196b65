"""What an operator says of channels, in a TOML file (docs/channels.md)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sds_core.observer.channel_table import ChannelEntry, ChannelTable, Objectives
from sds_core.reading import Table, TableError, read

_LIST = "channel"

_LONGEST = 200
"""Characters of a name: it is a label of a series, as ids of channels are."""

_Ratio = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class BadChannelTable(ValueError):
    """A file is no channel table.

    Attributes:
        file: Its path.
        problem: Where in it, what is wrong there, and what to do.
    """

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file = file
        self.problem = problem


class _Objectives(Table, frozen=True):
    delivery: _Ratio | None = None
    acknowledgement: _Ratio | None = None


class _Entry(Table, frozen=True, rename="kebab"):
    match: str
    name: str | None = None
    label: bool | None = None
    # TOML has four kinds of times, of which one alone says when.
    mute_until: Any = None
    objectives: _Objectives = _Objectives()

    def __post_init__(self) -> None:
        if not self.match:
            message = "has an empty match: write a channel id, or a pattern such as '*'"
            raise ValueError(message)
        if self.name is not None and not _is_shown(self.name):
            message = (
                f"has the name {self.name[:_LONGEST]!r}: write one line that can be "
                f"seen, of at most {_LONGEST} characters"
            )
            raise ValueError(message)
        mute = self.mute_until
        if mute is not None and not (isinstance(mute, datetime) and mute.tzinfo):
            shown = repr(mute) if isinstance(mute, str) else mute
            message = (
                f"has mute-until = {shown}: write date, time and offset without "
                "quotes, such as 2026-12-01T08:00:00Z"
            )
            raise ValueError(message)
        if mute is not None:
            try:
                mute.astimezone(UTC)
            except OverflowError:
                message = (
                    f"has mute-until = {mute}, which is no date in UTC: write one "
                    "such as 2099-12-31T00:00:00Z"
                )
                raise ValueError(message) from None


def read_channel_table(path: Path) -> ChannelTable:
    """Read a channel table; a file without entries says nothing of any channel.

    Raises:
        BadChannelTable: It cannot be read, is not TOML, or holds something else.
    """
    return ChannelTable(read_entries(path))


def read_entries(path: Path) -> list[ChannelEntry]:
    """The entries of a channel table, as `read_channel_table`."""
    try:
        given = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise BadChannelTable(path, error.strerror or str(error)) from error
    # Also numbers of thousands of digits, and brackets as deep.
    except (ValueError, RecursionError) as error:
        raise BadChannelTable(path, f"is not TOML: {error}") from error
    if others := sorted(given.keys() - {_LIST}):
        problem = f"has {others[0]!r} at its top: allowed is [[{_LIST}]] alone"
        raise BadChannelTable(path, problem)
    listed = given.get(_LIST, [])
    if not (isinstance(listed, list) and all(isinstance(e, Mapping) for e in listed)):
        problem = f"{_LIST} is to be a list of tables: write [[{_LIST}]] over each"
        raise BadChannelTable(path, problem)
    first: dict[str, int] = {}
    entries = []
    for number, raw in enumerate(listed, 1):
        where = f"entry {number}"
        if "match" in raw:
            where += f" ({raw['match']!r})"
        try:
            entry = read(raw, _Entry)
        except TableError as error:
            problem = " ".join(filter(None, (where, error.path, error.problem)))
            raise BadChannelTable(path, problem) from None
        if first.setdefault(entry.match, number) != number:
            problem = (
                f"{where} has the match of entry {first[entry.match]}: put both "
                "into one"
            )
            raise BadChannelTable(path, problem)
        entries.append(_said_by(entry))
    return entries


def _said_by(entry: _Entry) -> ChannelEntry:
    mute = entry.mute_until
    return ChannelEntry(
        entry.match,
        entry.name,
        Objectives(entry.objectives.delivery, entry.objectives.acknowledgement),
        entry.label,
        None if mute is None else round(mute.timestamp() * 1000),
    )


def _is_shown(name: str) -> bool:
    """Whether a name stands in one line of some length, and is not blank."""
    return name.isprintable() and bool(name.strip()) and len(name) <= _LONGEST
