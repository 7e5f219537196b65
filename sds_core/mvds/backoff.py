"""Functions that decide when a record is sent again.

2/MVDS, "Retransmission", lets each implementation choose its own function.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Backoff = Callable[[int, int], int]
"""Takes the number of times that a record was sent (at least 1), and the epoch of the
last sending; returns the epoch of the next sending."""

_DEPLOYED_EPOCHS = 90
_DEPLOYED_JITTER_EPOCHS = 30
# Maximum number of times that the wait doubles. A greater number has no effect, because
# status-go sends a record at most 14 times.
_DEPLOYED_DOUBLINGS = 14


def exponential(first_epochs: int = 2, bound_epochs: int = 128) -> Backoff:
    """Return an exponential backoff.

    Each wait is twice as long as the previous wait. After the last wait within the
    bound, the sequence restarts with the first wait.

    Args:
        first_epochs: Wait after a record is first sent, in epochs. With a wait of 1,
            most records are sent twice, because an answer takes up to two epochs.
        bound_epochs: Maximum wait, in epochs.

    Raises:
        ValueError: `first_epochs` is less than 1, or greater than `bound_epochs`.
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
    """Return the epoch of the next sending.

    Each wait is two epochs longer than the previous wait. The wait has no bound. The
    simulation in vacp2p/mvds uses this backoff.
    """
    return epoch + 2 * count


def deployed_exponential(random: Random) -> Backoff:
    """Return the backoff of status-go: 90 epochs, doubled after each sending.

    A random number of epochs, from 0 to 29, is added to each wait. The wait doubles at
    most 14 times. An epoch of status-go is 300 ms.
    """

    def next_epoch(count: int, epoch: int) -> int:
        wait = _DEPLOYED_EPOCHS << min(count - 1, _DEPLOYED_DOUBLINGS)
        return epoch + wait + random.randrange(_DEPLOYED_JITTER_EPOCHS)

    return next_epoch
