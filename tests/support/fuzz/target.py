"""One decoder to fuzz: its genuine inputs, and what must be true of any input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random


@dataclass(frozen=True)
class Target:
    """One decoder.

    Attributes:
        name: Name of the target, and of its directory in the corpus.
        genuine: Makes inputs as well-behaved senders and programs write them.
        change: Returns a variant of an input; gets a second input to take parts from.
        check: Decodes an input and checks the contract; returns whether the decoder
            accepted it. Any error that it raises says that the contract is broken.
        tested: Number of inputs in a run of the tests.
        share: Share of the time of `make fuzz`, relative to those of the others.
        calls_per_byte: Most function calls of `check` per byte of input, besides a
            fixed number.
        fixed_memory, memory_per_byte: Most bytes that `check` allocates at a time, for
            any input and per byte of it.
    """

    name: str
    genuine: Callable[[], Sequence[bytes]]
    change: Callable[[Random, bytes, bytes], bytes]
    check: Callable[[bytes], bool]
    tested: int = 2_500
    share: int = 1
    calls_per_byte: int = 20
    fixed_memory: int = 2_000_000
    memory_per_byte: int = 100

    @cached_property
    def seeds(self) -> Sequence[bytes]:
        """The genuine inputs."""
        return self.genuine()

    def input(self, random: Random, corpus: Sequence[bytes]) -> bytes:
        """Return a variant of a genuine input or of one in the corpus.

        Args:
            random: Chooses.
            corpus: Inputs that once broke the contract.
        """
        known = [*self.seeds, *corpus]
        return self.change(random, random.choice(known), random.choice(known))
