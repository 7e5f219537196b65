"""Descriptors that are left to the process."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import ExitStack

import pytest

from connectors.sockets.listener import AddressUnusable, are_scarce, listen
from tests.support.web.connections import is_closed


def test_descriptors_are_scarce_once_only_the_reserve_is_left() -> None:
    """The system gives the lowest free number, so all below it are open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull, "rb") as file:
        assert not are_scarce(file.fileno(), 1)
    assert not are_scarce(soft - 33, 32)
    assert are_scarce(soft - 32, 32)


def test_handshakes_of_an_address_end_none_of_another() -> None:
    """It is the busiest address whose oldest connection makes room."""
    with ExitStack() as stack:
        listener = stack.enter_context(listen("127.0.0.1", 0, 3))

        def connect(source: str) -> socket.socket:
            made = socket.create_connection(
                listener.getsockname(), timeout=30, source_address=(source, 0)
            )
            stack.enter_context(made)
            stack.enter_context(listener.accept()[0])
            return made

        honest = connect("127.0.0.2")
        crowd = [connect("127.0.0.1") for _ in range(6)]
        assert not is_closed(honest)
        assert [is_closed(one) for one in crowd] == [True] * 4 + [False] * 2


def test_ended_handshakes_do_not_count() -> None:
    """A connection that is still in its own is not ended because of them."""
    with ExitStack() as stack:
        listener = stack.enter_context(listen("127.0.0.1", 0, 3))

        def connect(source: str) -> tuple[socket.socket, socket.socket]:
            made = socket.create_connection(
                listener.getsockname(), timeout=30, source_address=(source, 0)
            )
            accepted = listener.accept()[0]
            return stack.enter_context(made), stack.enter_context(accepted)

        slow = connect("127.0.0.1")[0]
        ended = [connect("127.0.0.1")[1] for _ in range(2)]
        for each in ended:
            each.close()
        # The next connections have other descriptors.
        taken = [stack.enter_context(open(os.devnull, "rb")) for _ in ended]
        others = [connect("127.0.0.2")[0] for _ in range(2)]
        assert len(taken) == len(ended)
        assert not any(is_closed(each) for each in (slow, *others))


@pytest.mark.parametrize("host", ["\u200b", "xn--a\u200b.", "a" * 300])
def test_name_that_cannot_be_encoded_is_unusable(host: str) -> None:
    """As a pasted address with a hidden character."""
    with pytest.raises(AddressUnusable):
        listen(host, 0, 1)
