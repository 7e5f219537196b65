"""Channels shared by Python and js participants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any, NamedTuple, Protocol

from sds_core.message_channel import Profile
from tests.support.interop.channel import Channel
from tests.support.interop.node import NodeHost
from tests.support.interop.python_host import PythonHost

START_MS = 1_768_478_400_000
ENTRY_MS = 3_000
"""Timers that started together would go off together for ever."""

_CHANNEL_ID = "square"
_JS_SDS = Profile.js_sds()


class Square(NamedTuple):
    """A channel and the hosts of its participants."""

    channel: Channel
    python: PythonHost
    js: NodeHost


class OpenSquare(Protocol):
    """A function that opens a channel."""

    def __call__(
        self,
        *names: str,
        seed: int = 1,
        profile: Profile = _JS_SDS,
        options: Mapping[str, Any] | None = None,
    ) -> Square:
        """Open a channel with these participants.

        Args:
            names: those that begin with j are js, the others Python.
            seed: of everybody's random numbers and of the channel's delays.
            profile: of the Python participants.
            options: of the js participants, `MessageChannelOptions`.
        """


@contextmanager
def squares(node: str) -> Iterator[OpenSquare]:
    """Yield a function that opens channels; their Node processes end with the block."""
    with ExitStack() as stack:

        def open_square(
            *names: str,
            seed: int = 1,
            profile: Profile = _JS_SDS,
            options: Mapping[str, Any] | None = None,
        ) -> Square:
            js = stack.enter_context(NodeHost(node, _CHANNEL_ID, START_MS, seed))
            python = PythonHost(_CHANNEL_ID, seed)
            random = Random(f"{seed} channel")
            channel = Channel(START_MS, random)
            for name in names:
                if name.startswith("j"):
                    js.enter(channel.now_ms, name, **(options or {}))
                    channel.join(js, name)
                else:
                    python.enter(channel.now_ms, name, profile)
                    channel.join(python, name)
                channel.run(random.randint(1, ENTRY_MS))
            return Square(channel, python, js)

        yield open_square
