"""The toy protocol, whose views lie in the state with a wrong checksum."""

from __future__ import annotations

from dataclasses import replace

from tests.support.toy.protocol import ROOMS, TOY, RoomView


class DamagedRoomView(RoomView):
    """Changes one bit of its blob."""

    def to_blob(self) -> bytes:
        """Pack the view, and damage the blob."""
        data = bytearray(super().to_blob())
        data[-1] ^= 1
        return bytes(data)


DAMAGED_TOY = replace(TOY, kind=replace(ROOMS, view=DamagedRoomView))
