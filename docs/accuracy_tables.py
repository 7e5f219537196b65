"""What docs/accuracy.md tells of each scenario, and how a figure is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sds_core.message_channel.events import Cause
from tests.support.accuracy.figures import Figures
from tests.support.accuracy.suite import NAMES, QUIET_WITHOUT_LOSS

CALM = ("clean", "quiet", QUIET_WITHOUT_LOSS, "tap-blind")
"""Scenarios in which nobody is to be blamed for a loss."""


class Column(NamedTuple):
    """One figure of each scenario.

    Attributes:
        head: Its name.
        meaning: In one line.
        value: As the page shows it.
    """

    head: str
    meaning: str
    value: Callable[[Figures], object]


class Section(NamedTuple):
    """A table of the page, a row for each scenario.

    Attributes:
        title: Its heading.
        text: What it is about; one sentence per line.
        columns: After the scenario's name.
        names: The scenarios; their sum is the last row if they are all.
    """

    title: str
    text: str
    columns: tuple[Column, ...]
    names: Sequence[str] = NAMES


def _percent(part: int, rest: int) -> str:
    """The share of a part, never rounded up to all of it."""
    whole = part + rest
    if not whole:
        return "-"
    return f"{part * 10_000 // whole / 100:.2f} %"


def _minutes(verdict: str, reason: str | None = None) -> Callable[[Figures], str]:
    """Event time of all channels under a verdict."""

    def value(figures: Figures) -> str:
        spent_ms = sum(
            ms
            for (name, why), ms in figures.verdicts_ms.items()
            if name == verdict and reason in (None, why)
        )
        return f"{spent_ms / 60_000:,.1f}"

    return value


def _first_pass_ratio(figures: Figures) -> tuple[float, float] | None:
    """First-pass delivery ratio in percent, as the monitor has it and as it is."""
    said, reach = figures.deliveries, figures.reach
    ended = said.total()
    if not ended:
        return None
    first_pass = sum(n for (outcome, _), n in said.items() if outcome == "first_pass")
    return 100 * first_pass / ended, 100 * reach.reached / reach.pairs


def _ratio(place: int) -> Callable[[Figures], str]:
    def value(figures: Figures) -> str:
        ratios = _first_pass_ratio(figures)
        return "-" if ratios is None else f"{ratios[place]:.2f} %"

    return value


def _ratio_error(figures: Figures) -> str:
    ratios = _first_pass_ratio(figures)
    return "-" if ratios is None else f"{ratios[0] - ratios[1]:+.2f}"


def _delivered(said: str, really: str) -> Callable[[Figures], int]:
    return lambda f: f.deliveries[said, really]


def _called(said: str, cause: Cause) -> Callable[[Figures], int]:
    return lambda f: f.rebroadcasts[said, cause]


SECTIONS = (
    Section(
        "Lost messages",
        "A message is lost if, when the monitor decides, nobody but its sender had "
        "received it and no tap had shown it.\n"
        "It leaves evidence if a frame that a tap showed names it.",
        (
            Column("messages", "sent, with content", lambda f: f.messages),
            Column("found", "lost, and said to be", lambda f: f.losses.found),
            Column(
                "wrong",
                "said to be lost, and somebody else had it",
                lambda f: f.losses.wrong,
            ),
            Column(
                "missed",
                "lost with evidence, and not said to be",
                lambda f: f.losses.missed,
            ),
            Column(
                "recall",
                "share of those lost with evidence that were found",
                lambda f: _percent(f.losses.found, f.losses.missed),
            ),
            Column(
                "precision",
                "share of those said to be lost that were",
                lambda f: _percent(f.losses.found, f.losses.wrong),
            ),
            Column(
                "tap gap",
                "missed by the tap alone, and rightly not called lost",
                lambda f: f.losses.tap_gaps,
            ),
            Column(
                "stale",
                "found, and still called lost at the end although somebody else has "
                "received it since, unseen by the tap",
                lambda f: f.losses.stale,
            ),
            Column(
                "unseeable: never named",
                "received by nobody else, ever, and no frame that a tap showed names "
                "it",
                lambda f: f.losses.unnamed,
            ),
            Column(
                "unseeable: hidden",
                "received by nobody else, and named only in the warm-up, or with "
                "nothing before it in the history that the tap had seen since: it "
                "may be older than the monitor's first sight",
                lambda f: f.losses.hidden,
            ),
            Column(
                "trailing",
                "received by nobody else although the tap saw it: no dependency is "
                "missing, and whether it is found stands under undelivered messages",
                lambda f: f.losses.trailing,
            ),
            Column(
                "undecided",
                "received by nobody else, and named less than 300 s before the end",
                lambda f: f.losses.undecided,
            ),
        ),
    ),
    Section(
        "Undelivered messages",
        "Of messages that a tap showed: which other participants had not received them "
        "300 s later.\n"
        "Participants of the other dialect are left out, since they cannot read them.",
        (
            Column("found", "lacking, and said to be", lambda f: f.undelivered.found),
            Column(
                "wrong",
                "said to be lacking, and received by then",
                lambda f: f.undelivered.wrong,
            ),
            Column(
                "missed",
                "lacking, not said to be, and a usable frame that was composed after "
                "the 300 s shows it",
                lambda f: f.undelivered.missed,
            ),
            Column(
                "recall",
                "share of those shown to be lacking that were found",
                lambda f: _percent(f.undelivered.found, f.undelivered.missed),
            ),
            Column(
                "precision",
                "share of those said to be lacking that were",
                lambda f: _percent(f.undelivered.found, f.undelivered.wrong),
            ),
            Column(
                "unseeable: behind",
                "lacking, and all its frames since have Lamport timestamps that are "
                "not greater than the message's",
                lambda f: f.undelivered.behind,
            ),
            Column(
                "unseeable: silent",
                "lacking, and it had not spoken before, or never did after the 300 s",
                lambda f: f.undelivered.unseeable,
            ),
        ),
    ),
    Section(
        "Deliveries",
        "What the monitor said of each message and participant on which it concluded, "
        "and which sending of the message really arrived.\n"
        "A miss that is healed before the participant's next frame shows nowhere.",
        (
            Column(
                "first pass, first",
                "said to be delivered at the first pass; the first sending arrived",
                _delivered("first_pass", "first"),
            ),
            Column(
                "first pass, later",
                "said so; only a later sending arrived",
                _delivered("first_pass", "later"),
            ),
            Column(
                "first pass, none",
                "said so; none ever arrived",
                _delivered("first_pass", "none"),
            ),
            Column(
                "recovered, later",
                "said to have recovered; a later sending arrived",
                _delivered("recovered", "later"),
            ),
            Column(
                "recovered, first",
                "said so; the first sending arrived",
                _delivered("recovered", "first"),
            ),
            Column(
                "lost, later",
                "said to be lost, retracted or not; a later sending arrived in the end",
                _delivered("lost", "later"),
            ),
            Column(
                "lost, first",
                "said so; the first sending arrived",
                _delivered("lost", "first"),
            ),
            Column(
                "lost, none", "said so; none ever arrived", _delivered("lost", "none")
            ),
            Column("first-pass ratio", "as the monitor has it", _ratio(0)),
            Column(
                "really",
                "share of all pairs of a message that a tap showed and a participant "
                "who was there that the first sending reached, also of those on which "
                "the monitor did not conclude",
                _ratio(1),
            ),
            Column("error", "the first less the second, in points", _ratio_error),
        ),
    ),
    Section(
        "Acknowledgements",
        "The truth has the time of every record, and so of every definite "
        "acknowledgement; its filters hold just what was received.",
        (
            Column(
                "definite",
                "messages definitely acknowledged",
                lambda f: f.acknowledgements.definite,
            ),
            Column(
                "differing",
                "messages that only the monitor or only the truth has there",
                lambda f: f.acknowledgements.differing,
            ),
            Column(
                "error in ms",
                "sum of the differences of their latencies from the truth's",
                lambda f: f.acknowledgements.error_ms,
            ),
            Column(
                "wrong",
                "definitely acknowledged when nobody else had the message",
                lambda f: f.acknowledgements.wrong,
            ),
            Column(
                "probable",
                "messages probably acknowledged",
                lambda f: f.acknowledgements.probable,
            ),
            Column(
                "excess",
                "how many more that is, channel by channel, than the truth's",
                lambda f: f.acknowledgements.excess,
            ),
            Column(
                "unacknowledged",
                "said to be unacknowledged, and nobody else had it by the deadline",
                lambda f: f.acknowledgements.silent,
            ),
            Column(
                "unshown",
                "said to be unacknowledged, and somebody else had it by the deadline, "
                "which the frames of too few showed",
                lambda f: f.acknowledgements.unshown,
            ),
        ),
    ),
    Section(
        "Repairs and retries",
        "What the monitor called each rebroadcast, and why it was really sent.",
        (
            Column(
                "repair, repair",
                "called a repair, and one",
                _called("repair", Cause.REPAIR),
            ),
            Column(
                "repair, retry",
                "called a repair, was a retry",
                _called("repair", Cause.RETRY),
            ),
            Column(
                "retry, repair",
                "called a retry, was a repair: the tap missed the request",
                _called("retry", Cause.REPAIR),
            ),
            Column(
                "retry, retry", "called a retry, and one", _called("retry", Cause.RETRY)
            ),
            Column(
                "recall",
                "share of the repairs that were called one",
                lambda f: _percent(
                    f.rebroadcasts["repair", Cause.REPAIR],
                    f.rebroadcasts["retry", Cause.REPAIR],
                ),
            ),
            Column(
                "precision",
                "share of those called a repair that were one",
                lambda f: _percent(
                    f.rebroadcasts["repair", Cause.REPAIR],
                    f.rebroadcasts["repair", Cause.RETRY],
                ),
            ),
        ),
    ),
    Section(
        "False alarms",
        "Minutes of event time, over all channels, under each verdict, where the "
        "network loses nothing or one transmission in a hundred.\n"
        "Losses in `quiet` and `tap-blind` are real: a channel that recovers from one "
        "is rightly degraded.",
        (
            Column("ok", "nothing to say", _minutes("ok")),
            Column("quiet", "no content for ten minutes", _minutes("quiet")),
            Column("warming up", "the first 30 s", _minutes("warming_up")),
            Column("degraded", "for any reason", _minutes("degraded")),
            Column(
                "failing: lost",
                "a message lost to all, or to some",
                _minutes("failing", "lost"),
            ),
            Column(
                "failing: unacknowledged",
                "over 5 % of the messages were",
                _minutes("failing", "unacknowledged"),
            ),
            Column("blind", "the tap had a hole", _minutes("blind")),
            Column(
                "false losses",
                "lost or undelivered messages that were said and wrong",
                lambda f: f.losses.wrong + f.undelivered.wrong,
            ),
            Column(
                "false blame",
                "unacknowledged messages that somebody else had",
                lambda f: f.acknowledgements.unshown,
            ),
        ),
        CALM,
    ),
)
"""All tables but the goals and catching up."""
