"""Files in TOML that people write."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.toml_file import UnreadableToml, read_toml


@pytest.mark.parametrize(
    "text",
    [
        b"name = ",
        b"\xff",
        b"a = " + b"[" * 5_000,
        b"a = " + b"9" * 5_000,
    ],
    ids=["no value", "no text", "deep", "long number"],
)
def test_what_is_no_toml_is_refused_in_one_line(tmp_path: Path, text: bytes) -> None:
    """Also what Python's reader has no error of its own for."""
    file = tmp_path / "a.toml"
    file.write_bytes(text)
    with pytest.raises(UnreadableToml, match=r"^is not TOML: [^\n]+$"):
        read_toml(file)


def test_missing_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    """That of the system."""
    with pytest.raises(UnreadableToml, match=r"^No such file or directory$"):
        read_toml(tmp_path / "a.toml")


def test_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    """Some editors write one."""
    file = tmp_path / "a.toml"
    file.write_bytes(b"\xef\xbb\xbfa = 1")
    assert read_toml(file) == {"a": 1}
