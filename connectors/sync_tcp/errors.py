"""Errors of a synchronisation over TCP, beside `sds_core.prolly.errors`."""

from __future__ import annotations

from connectors.sync_tcp.address import Address


class PeerUnreachable(OSError):
    """The peer cannot be reached, or went away again and again.

    Attributes:
        address: The peer.
        detail: What happened last.
    """

    def __init__(self, address: Address, detail: str) -> None:
        super().__init__(
            f"{address} cannot be reached ({detail}): does `sds-monitor audit serve` "
            "run there, and is the port open?"
        )
        self.address = address
        self.detail = detail


class ListenFailed(OSError):
    """The server cannot listen on its address.

    Attributes:
        address: The address.
    """

    def __init__(self, address: Address, detail: str) -> None:
        super().__init__(f"cannot listen on {address} ({detail}): choose another")
        self.address = address
