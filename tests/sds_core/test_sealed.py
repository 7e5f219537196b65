"""Stored bytes show whether they are whole."""

from __future__ import annotations

import pytest

from sds_core.sealed import Seal


class BrokenSeal(Exception):
    """The error of the seal."""


SEAL = Seal(7, list[int], BrokenSeal)
# Version 7, CRC-32 of the last two bytes, and [5] in MessagePack.
SEALED = bytes.fromhex("07 59e95d2b 9105")


def test_form_of_stored_bytes_does_not_change() -> None:
    """Files of earlier releases are in this form."""
    assert SEAL.pack([5]) == SEALED
    assert SEAL.unpack(SEALED) == [5]


@pytest.mark.parametrize("at", range(len(SEALED)))
def test_change_of_any_byte_is_noticed(at: int) -> None:
    """Version, checksum or content."""
    changed = bytearray(SEALED)
    changed[at] ^= 1
    with pytest.raises(BrokenSeal):
        SEAL.unpack(bytes(changed))


@pytest.mark.parametrize("length", range(len(SEALED)))
def test_bytes_that_are_cut_off_are_noticed(length: int) -> None:
    """Wherever they end."""
    with pytest.raises(BrokenSeal):
        SEAL.unpack(SEALED[:length])


def test_another_value_is_refused() -> None:
    """It is whole, but not what the program reads."""
    with pytest.raises(BrokenSeal, match="Expected `array`, got `str`"):
        SEAL.unpack(Seal(7, str, BrokenSeal).pack("text"))
