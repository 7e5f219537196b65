"""What really happened in a simulation, and what a correct monitor says of it.

The figures are those of the report, counted from what is known: which transmission
each record shows, and what each participant had received when it composed a frame. No
filter is read. What a frame names and asks for is taken from the frame as decoded, so
that a fault of `sds_core.wire` would not show here. Whole lists are gone over for each
question; indices only keep that from taking for ever. Nothing here knows the observer.
"""

from sds_core.simulation.truth.truth import Truth

__all__ = ["Truth"]
