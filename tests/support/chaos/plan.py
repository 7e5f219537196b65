"""Which process is killed when: drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from random import Random
from typing import NamedTuple


class Victim(StrEnum):
    """What is killed."""

    DRIVER = "driver"
    """The Python process of the command."""
    JVM = "JVM"
    """Spark's Java process."""
    WORKER = "worker"
    """A Python worker of Spark, in the middle of its work if there is any."""
    GROUP = "group"
    """All of them at once, as a supervisor or a power failure does."""
    BROKER = "broker"
    STOPPED_BROKER = "broker, stopped"
    """Ended in order, as for an upgrade."""
    MIRROR = "mirror"
    AUDIT = "audit"
    """Which copies from the mirror's topic what another topic lacks."""
    AUDIT_SERVER = "audit server"
    """From which it copies."""

    @property
    def is_killed(self) -> bool:
        """Whether it has no time to end in order."""
        return self is not Victim.STOPPED_BROKER


JOB = frozenset({Victim.DRIVER, Victim.JVM, Victim.WORKER, Victim.GROUP})
"""Parts of one run of `sds-monitor run`."""

COPYING = frozenset({Victim.AUDIT, Victim.AUDIT_SERVER})
"""Both sides of an audit between two topics."""

_ROUND = (*Victim, Victim.GROUP, Victim.JVM, Victim.BROKER, Victim.MIRROR)
_STARTABLE = (Victim.DRIVER, Victim.GROUP, Victim.JVM)
_LONGEST_START_S = 9.0


class Moment(StrEnum):
    """When the job is killed."""

    START = "while it starts"
    BATCH = "inside a batch"
    ANY = "at any moment"


class Strike(NamedTuple):
    """One kill.

    Attributes:
        victim: What is killed.
        moment: When, if it is a part of the job.
        delay_s: Time to wait: for `START` from the job's start, for `BATCH` from the
            batch's, else from the strike before or the job's first batch.
        down_s: How long a broker stays away.
    """

    victim: Victim
    moment: Moment
    delay_s: float
    down_s: float


def strikes(kills: int, seed: int) -> list[Strike]:
    """Return strikes until so many are kills; first comes every victim once."""
    endless = _strikes(Random(seed))
    found = []
    while kills > 0:
        strike = next(endless)
        kills -= strike.victim.is_killed
        found.append(strike)
    return found


def _strikes(random: Random) -> Iterator[Strike]:
    victims = list(Victim)
    while True:
        random.shuffle(victims)
        for victim in victims:
            yield _strike(random, victim)
        victims = list(_ROUND)


def _strike(random: Random, victim: Victim) -> Strike:
    moment = Moment.ANY
    if victim in JOB:
        moment = random.choice((Moment.BATCH, Moment.BATCH, Moment.ANY))
        if victim in _STARTABLE and random.random() < 0.2:
            moment = Moment.START
    longest_s = {Moment.START: _LONGEST_START_S, Moment.BATCH: 0.4, Moment.ANY: 3.0}
    return Strike(
        victim,
        moment,
        round(random.uniform(0, longest_s[moment]), 3),
        round(random.uniform(0, 3), 3),
    )
