"""What really happened in a simulation, and what a correct monitor says of it.

The figures are those of the report, counted from what is known: which transmission
each record shows, and what each participant had received when it composed a frame. No
frame is decoded and no filter is read. Whole lists are gone over for each question;
indices only keep that from taking for ever. Nothing here knows the observer.
"""

from sds_core.simulation.truth.truth import Truth

__all__ = ["Truth"]
