"""Stored bytes show whether they are whole."""

from __future__ import annotations

import msgspec
import pytest

from sds_core.sealed import BrokenSeal, seal, unseal

DECODER = msgspec.msgpack.Decoder(list[int])
# Version 7, CRC-32 of the last two bytes, and [5] in MessagePack.
SEALED = bytes.fromhex("07 59e95d2b 9105")


def test_form_of_stored_bytes_does_not_change() -> None:
    """Files of earlier releases are in this form."""
    assert seal(7, [5]) == SEALED
    assert unseal(7, SEALED, DECODER) == [5]


@pytest.mark.parametrize("at", range(len(SEALED)))
def test_change_of_any_byte_is_noticed(at: int) -> None:
    """Version, checksum or content."""
    changed = bytearray(SEALED)
    changed[at] ^= 1
    with pytest.raises(BrokenSeal):
        unseal(7, bytes(changed), DECODER)


@pytest.mark.parametrize("length", range(len(SEALED)))
def test_bytes_that_are_cut_off_are_noticed(length: int) -> None:
    """Wherever they end."""
    with pytest.raises(BrokenSeal):
        unseal(7, SEALED[:length], DECODER)


def test_another_value_is_refused() -> None:
    """It is whole, but not what the program reads."""
    with pytest.raises(BrokenSeal, match="Expected `array`, got `str`"):
        unseal(7, seal(7, "text"), DECODER)
