"""Reads the channel table, an operator's TOML file (docs/channels.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Annotated, Any

import msgspec

from connectors.toml_file import UnreadableToml, read_toml
from sds_core.observer.channel_table import ChannelEntry, Objectives
from sds_core.reading import Table, TableError, read
from sds_core.text import did_you_mean, shown

_LIST = "channel"

_MAX_NAME_LENGTH = 200
"""Maximum length of a channel's name, in characters.

Names must be short, because they are values of metric labels.
"""

_Ratio = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class BadChannelTable(ValueError):
    """The file is not a valid channel table.

    The message states where the mistake is, and how to correct the mistake.
    """

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"{file}: {problem}")


class _Objectives(Table, frozen=True):
    delivery: _Ratio | None = None
    acknowledgement: _Ratio | None = None


class _Entry(Table, frozen=True, rename="kebab"):
    match: str
    name: str | None = None
    label: bool | None = None
    # The type is `Any`, because TOML has four types of date and time. `__post_init__`
    # accepts only the type with date, time and offset.
    mute_until: Any = None
    objectives: _Objectives = _Objectives()

    def __post_init__(self) -> None:
        if not self.match:
            message = (
                "has an empty `match`: write a channel id, or a pattern such as '*'"
            )
            raise ValueError(message)
        if self.name is not None and not _is_printable_name(self.name):
            message = (
                f"has the name {self.name[:_MAX_NAME_LENGTH]!r}: write a name on one "
                f"line, with at most {_MAX_NAME_LENGTH} printable characters"
            )
            raise ValueError(message)
        mute = self.mute_until
        if mute is not None and not (isinstance(mute, datetime) and mute.tzinfo):
            value = mute if isinstance(mute, date | time) else shown(mute)
            message = (
                f"has mute-until = {value}: write date, time and offset without "
                "quotes, such as 2026-12-01T08:00:00Z"
            )
            raise ValueError(message)
        if mute is not None:
            try:
                mute.astimezone(UTC)
            except OverflowError:
                message = (
                    f"has mute-until = {mute}, which is not a possible date in UTC: "
                    "write a date such as 2099-12-31T00:00:00Z"
                )
                raise ValueError(message) from None


def read_entries(path: Path) -> list[ChannelEntry]:
    """Return the entries of a channel table; an empty list if the file has none.

    Raises:
        BadChannelTable: The file cannot be read, is not TOML, or has anything that
            docs/channels.md does not allow.
    """
    try:
        document = read_toml(path)
    except UnreadableToml as error:
        raise BadChannelTable(path, str(error)) from error
    if others := sorted(document.keys() - {_LIST}):
        close = did_you_mean(others[0], [_LIST])
        problem = (
            f"the file has the top-level key {shown(others[0])}{close}: only "
            f"[[{_LIST}]] is allowed"
        )
        raise BadChannelTable(path, problem)
    listed = document.get(_LIST, [])
    if not (isinstance(listed, list) and all(isinstance(e, Mapping) for e in listed)):
        problem = (
            f"{_LIST} must be a list of tables: write [[{_LIST}]] above each table"
        )
        raise BadChannelTable(path, problem)
    first: dict[str, int] = {}
    entries = []
    for number, raw in enumerate(listed, 1):
        where = f"entry {number}"
        if "match" in raw:
            where += f" ({shown(raw['match'])})"
        try:
            entry = read(raw, _Entry)
        except TableError as error:
            problem = " ".join(filter(None, (where, error.path, error.problem)))
            raise BadChannelTable(path, problem) from None
        if first.setdefault(entry.match, number) != number:
            problem = (
                f"{where} has the same match as entry {first[entry.match]}: "
                "merge the two"
            )
            raise BadChannelTable(path, problem)
        entries.append(_channel_entry(entry))
    return entries


def _channel_entry(entry: _Entry) -> ChannelEntry:
    mute = entry.mute_until
    return ChannelEntry(
        entry.match,
        entry.name,
        Objectives(entry.objectives.delivery, entry.objectives.acknowledgement),
        entry.label,
        None if mute is None else round(mute.timestamp() * 1000),
    )


def _is_printable_name(name: str) -> bool:
    return name.isprintable() and bool(name.strip()) and len(name) <= _MAX_NAME_LENGTH
