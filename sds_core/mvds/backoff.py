"""Functions that decide when a record is sent again.

2/MVDS, "Retransmission", leaves the choice of such a function open.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Backoff = Callable[[int, int], int]
"""Takes a record's Send Count (from 1) and the epoch of its last sending; returns the
epoch of the next sending."""

_DEPLOYED_EPOCHS = 90
_DEPLOYED_JITTER_EPOCHS = 30
# status-go stops sending a record after 14 sendings, so more doublings never occur.
_DEPLOYED_DOUBLINGS = 14


def exponential(first_epochs: int = 2, bound_epochs: int = 128) -> Backoff:
    """Return a backoff whose waits double up to a bound, and then begin again.

    Args:
        first_epochs: Wait after a record is first sent, in epochs. With a wait of 1,
            most records are sent twice, because an answer takes up to two epochs.
        bound_epochs: Maximum wait, in epochs.

    Raises:
        ValueError: The first wait is less than 1, or the bound is less than the first
            wait.
    """
    if not 1 <= first_epochs <= bound_epochs:
        message = (
            f"first_epochs is {first_epochs}, but must be from 1 to {bound_epochs} "
            "(bound_epochs)"
        )
        raise ValueError(message)
    waits = (bound_epochs // first_epochs).bit_length()

    def next_epoch(count: int, epoch: int) -> int:
        return epoch + (first_epochs << ((count - 1) % waits))

    return next_epoch


DEFAULT = exponential()
"""Waits of 2, 4, 8, ..., 128, 2, 4, ... epochs."""


def linear(count: int, epoch: int) -> int:
    """Wait two epochs longer each time, without a bound (simulation of vacp2p/mvds)."""
    return epoch + 2 * count


def deployed_exponential(random: Random) -> Backoff:
    """Return the backoff of status-go: 90 epochs, doubled each time, plus 0 to 29.

    The added number of epochs is random. An epoch of status-go is 300 ms. The wait
    doubles at most 14 times.
    """

    def next_epoch(count: int, epoch: int) -> int:
        wait = _DEPLOYED_EPOCHS << min(count - 1, _DEPLOYED_DOUBLINGS)
        return epoch + wait + random.randrange(_DEPLOYED_JITTER_EPOCHS)

    return next_epoch
