"""Channel tables in TOML: reading them, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.files.channel_table import (
    BadChannelTable,
    read_entries,
)
from sds_core.observer.channel_table import (
    DEFAULT_SETTINGS,
    ChannelEntry,
    ChannelTable,
    Objectives,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a table is written."""
    return tmp_path / "channels.toml"


def test_every_key_of_an_entry_is_read(file: Path) -> None:
    """Times are converted by their offset to Unix ms."""
    file.write_text(
        """
        [[channel]]
        match = "support-*"
        name = "Support rooms"
        label = true
        mute-until = 2026-12-01T09:00:00.5+01:00
        [channel.objectives]
        delivery = 0.999
        acknowledgement = 0.9

        [[channel]]
        match = "lobby"
        label = false
        """
    )
    assert read_entries(file) == [
        ChannelEntry(
            "support-*",
            "Support rooms",
            Objectives(delivery=0.999, acknowledgement=0.9),
            label=True,
            mute_until_ms=1_796_112_000_500,
        ),
        ChannelEntry("lobby", label=False),
    ]
    assert ChannelTable(read_entries(file)).of("support-7").name == "Support rooms"


def test_empty_file_gives_a_table_without_entries(file: Path) -> None:
    """A file without entries is valid."""
    file.write_text("# nothing yet\n")
    assert ChannelTable(read_entries(file)).of("lobby") == DEFAULT_SETTINGS


ENTRY = '[[channel]]\nmatch = "a"\n'
WRITE_TIME = "without quotes, such as 2026-12-01T08:00:00Z"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file or directory"),
        ("[[channel]", "is not TOML: "),
        ("a = " + "[" * 100_000, "is not TOML: "),
        ("a = " + "9" * 5_000, "is not TOML: "),
        ("mute = 1", "has the top-level key 'mute': only [[channel]] is allowed"),
        ('[channel]\nmatch = "a"', "must be a list of tables: write [[channel]]"),
        ('[[channel]]\nname = "x"', "entry 1 lacks the key 'match'"),
        ("[[channel]]\nmatch = 3", "entry 1 (3) match is 3: allowed is a text"),
        ('[[channel]]\nmatch = ""', "entry 1 ('') has an empty `match`: write a"),
        (ENTRY * 2, "entry 2 ('a') has the same match as entry 1: merge the two"),
        (ENTRY + "nme = 1", "has no key 'nme' (did you mean 'name'?): allowed is"),
        (
            "[[chanel]]",
            "has the top-level key 'chanel' (did you mean 'channel'?): only",
        ),
        (ENTRY + "label = 'yes'", "entry 1 ('a') label is 'yes': allowed is true or"),
        (ENTRY + "name = ' '", "entry 1 ('a') has the name ' ': write a name on one"),
        (ENTRY + 'name = "a\\nb"', r"has the name 'a\nb': write a name on one"),
        (ENTRY + "mute-until = 2026-12-01T08:00:00", "2026-12-01 08:00:00: write date"),
        (ENTRY + "mute-until = 2026-12-01", "= 2026-12-01: write date"),
        (
            ENTRY + "mute-until = 9999-12-31T23:59:59-12:00",
            "is not a possible date in UTC",
        ),
        (ENTRY + f"name = '{'x' * 201}'", "with at most 200 printable characters"),
        (ENTRY + "mute-until = '2026-12-01T08:00:00Z'", WRITE_TIME),
        (ENTRY + "mute-until = true", "mute-until = True: write date, time and"),
        (
            ENTRY + "objectives = { delivery = 99.9 }",
            "objectives.delivery is 99.9: allowed is a number above 0 below 1",
        ),
        (ENTRY + "objectives = { delivery = 1 }", "objectives.delivery is 1: "),
        (ENTRY + "objectives = { delivery = nan }", "objectives.delivery is nan: "),
        (ENTRY + "objectives = { speed = 0.9 }", "objectives has no key 'speed'"),
        (ENTRY + "objectives = 0.9", "objectives is 0.9: allowed is a table with"),
    ],
)
def test_bad_table_is_refused_in_one_line(
    file: Path, text: str | None, said: str
) -> None:
    """The error has file, entry, key, value, and what is allowed."""
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadChannelTable) as caught:
        read_entries(file)
    line = str(caught.value)
    assert line.startswith(f"{file}: ")
    assert said in line
    assert "\n" not in line
