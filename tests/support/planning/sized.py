"""The cost model of the measurements that the package ships."""

from __future__ import annotations

from functools import cache

import msgspec

from benchmarks.measured import PERFORMANCE, SCALING
from sds_core.planning.measured import Performance, Scaling
from sds_core.planning.size import CostModel


def performance() -> Performance:
    """The shipped run of `make bench`."""
    return msgspec.json.decode(PERFORMANCE.read_bytes(), type=Performance)


def scaling() -> Scaling:
    """The shipped figures of the other benchmarks."""
    return msgspec.json.decode(SCALING.read_bytes(), type=Scaling)


@cache
def cost_model() -> CostModel:
    """The model fitted to both."""
    return CostModel(performance(), scaling())
