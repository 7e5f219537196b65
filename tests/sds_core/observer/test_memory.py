"""Bounded memory of keys: columns and what was added since."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sds_core.observer.columns import integers
from sds_core.observer.memory import Memory, Remembered
from tests.support.properties import CAREFUL

LIMIT = 8
KEYS = st.one_of(st.integers(0, 12), st.integers(-(2**63), 2**63 - 1))


class MemoryMachine(RuleBasedStateMachine):
    """A memory does what an ordered dictionary does."""

    def __init__(self) -> None:
        super().__init__()
        empty = np.zeros(0, np.int64)
        self.memory = Memory(LIMIT, empty, empty, (empty,))
        self.model: dict[int, tuple[int, int]] = {}
        self.clock_ms = 0

    @rule(key=KEYS, later_ms=st.integers(0, 3), fact=st.integers(0, 5))
    def add(self, key: int, later_ms: int, fact: int) -> None:
        """The oldest goes if there are too many."""
        self.clock_ms += later_ms
        self.model.pop(key, None)
        self.model[key] = self.clock_ms, fact
        evicted = self.memory.add(key, (self.clock_ms, fact))
        assert evicted == (len(self.model) > LIMIT)
        if evicted:
            del self.model[next(iter(self.model))]

    @rule(key=KEYS, fact=st.integers(0, 5))
    def change(self, key: int, fact: int) -> None:
        """Facts may be replaced without a change of age."""
        if key in self.model:
            self.model[key] = self.model[key][0], fact
        self.memory.change(key, fact)

    @rule(before_ms=st.integers(0, 9))
    def forget(self, before_ms: int) -> None:
        """What is older than a clock goes."""
        edge_ms = self.clock_ms - before_ms
        self.memory.forget_before(edge_ms)
        self.model = {k: v for k, v in self.model.items() if v[0] >= edge_ms}

    @rule()
    def restart(self) -> None:
        """The columns are all there is to keep."""
        keys, clocks, facts = self.memory.columns()
        self.memory = Memory(LIMIT, keys, clocks, (facts,))

    @invariant()
    def same(self) -> None:
        """Every key is found with its fact, in order of age, and no other."""
        assert len(self.memory) == len(self.model)
        for key in range(13):
            assert (key in self.memory) == (key in self.model)
        for key, (_, fact) in self.model.items():
            assert self.memory.facts(key) == (fact,)
        oldest = next((clock for clock, _ in self.model.values()), None)
        assert self.memory.oldest_ms == oldest
        assert integers(self.memory.columns()[0]) == list(self.model)
        data = msgspec.msgpack.encode(self.memory.packed())
        packed = msgspec.msgpack.decode(data, type=Remembered)
        again = Memory.of(LIMIT, packed)
        assert integers(again.columns()[0]) == list(self.model)
        assert integers(again.columns()[1]) == [one for one, _ in self.model.values()]


TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(
    CAREFUL, max_examples=CAREFUL.max_examples // 4, stateful_step_count=20
)
