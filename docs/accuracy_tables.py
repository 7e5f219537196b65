"""The tables of docs/accuracy.md: their figures for each scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sds_core.message_channel.events import Cause
from tests.support.accuracy.figures import Figures
from tests.support.accuracy.suite import NAMES, QUIET_WITHOUT_LOSS

CALM = ("clean", "quiet", QUIET_WITHOUT_LOSS, "phones", "tap-blind")
"""Scenarios without lasting losses, so that each reported loss is false."""


class Column(NamedTuple):
    """One figure of each scenario.

    Attributes:
        head: Heading of the column.
        meaning: Meaning in one line; empty if the section's text defines it.
        value: Returns the text of a cell.
    """

    head: str
    meaning: str
    value: Callable[[Figures], object]


class Section(NamedTuple):
    """A table of the page, a row for each scenario.

    Attributes:
        title: Heading of the table.
        text: What the table counts; one sentence per line.
        columns: Columns after the scenario's name.
        names: Names of the scenarios. If these are all scenarios, the last row is their
            sum.
    """

    title: str
    text: str
    columns: tuple[Column, ...]
    names: Sequence[str] = NAMES


def percent(part: int, rest: int) -> str:
    """Return the share of a part in percent, rounded down."""
    whole = part + rest
    if not whole:
        return "-"
    return f"{part * 10_000 // whole / 100:.2f} %"


def minutes(verdict: str, reason: str | None = None) -> Callable[[Figures], str]:
    """Return the event time that all channels spent under a verdict."""

    def value(figures: Figures) -> str:
        spent_ms = sum(
            ms
            for (name, why), ms in figures.verdicts_ms.items()
            if name == verdict and reason in (None, why)
        )
        return f"{spent_ms / 60_000:,.1f}"

    return value


def all_minutes(spent_ms: Mapping[tuple[str, str], int]) -> str:
    """Return the sum of event times in minutes."""
    return f"{sum(spent_ms.values()) / 60_000:,.1f}"


def _wrong_minutes(verdict: str, reason: str) -> Callable[[Figures], str]:
    return lambda f: f"{f.wrong_verdicts_ms[verdict, reason] / 60_000:,.1f}"


def wrong_share(figures: Figures) -> str:
    """Return the share of the time under a wrong verdict in percent."""
    share = figures.wrong_verdicts_ms.total() / figures.verdicts_ms.total()
    return f"{100 * share:.2f} %"


def _first_pass_ratio(figures: Figures) -> tuple[float, float] | None:
    """Return first-pass delivery ratios in percent: the monitor's and the true one."""
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


def called(said: str, cause: Cause) -> Callable[[Figures], int]:
    """Return how many rebroadcasts of a cause the monitor called something."""
    return lambda f: f.rebroadcasts[said, cause]


SECTIONS = (
    Section(
        "Lost messages",
        "A message counts as lost if, when the monitor decides, only the sender has "
        "the message and no tap has seen it.\n"
        "A lost message leaves evidence if a tap saw a frame that names the message.",
        (
            Column("messages", "content messages", lambda f: f.messages),
            Column("found", "", lambda f: f.losses.found),
            Column(
                "wrong",
                "",
                lambda f: f.losses.wrong,
            ),
            Column(
                "missed",
                "",
                lambda f: f.losses.missed,
            ),
            Column(
                "recall",
                "",
                lambda f: percent(f.losses.found, f.losses.missed),
            ),
            Column(
                "precision",
                "",
                lambda f: percent(f.losses.found, f.losses.wrong),
            ),
            Column(
                "tap gap",
                "messages that the monitor rightly did not report as lost, because "
                "only the tap missed them",
                lambda f: f.losses.tap_gaps,
            ),
            Column(
                "stale",
                "losses that the monitor found and still reports at the end, although "
                "another participant has received the message since then. The tap did "
                "not see that the participant received the message",
                lambda f: f.losses.stale,
            ),
            Column(
                "unseeable: never named",
                "no other participant received the message, and no tap saw a frame "
                "that names it",
                lambda f: f.losses.unnamed,
            ),
            Column(
                "unseeable: hidden",
                "no other participant received the message. Frames name the message, "
                "but none of them proves that the message was sent [after the "
                "start](figures.md#6-missing-dependencies)",
                lambda f: f.losses.hidden,
            ),
            Column(
                "trailing",
                "no other participant received the message, but the tap saw it, so the "
                "message is undelivered, not lost",
                lambda f: f.losses.trailing,
            ),
            Column(
                "undecided",
                "no other participant received the message, and a frame first named "
                "the message less than 300 s before the end",
                lambda f: f.losses.undecided,
            ),
        ),
    ),
    Section(
        "Undelivered messages",
        "This table counts pairs of a message and a participant who uses the message's "
        "dialect.\nA pair counts if the participant still lacks the message after "
        "300 s.\n"
        "The 300 s begin at the participant's first frame that shows that the "
        "participant lacks the message.\n"
        "If the participant is absent for more than 300 s after this frame, the 300 s "
        "begin when the participant returns.",
        (
            Column("found", "", lambda f: f.undelivered.found),
            Column(
                "wrong",
                "",
                lambda f: f.undelivered.wrong,
            ),
            Column(
                "missed",
                "not reported, although a usable frame shows that the participant "
                "still lacked the message after 300 s",
                lambda f: f.undelivered.missed,
            ),
            Column(
                "recall",
                "",
                lambda f: percent(f.undelivered.found, f.undelivered.missed),
            ),
            Column(
                "precision",
                "",
                lambda f: percent(f.undelivered.found, f.undelivered.wrong),
            ),
            Column(
                "unseeable: behind",
                "the participant lacked the message, but none of its later frames "
                "has a greater Lamport timestamp than the message",
                lambda f: f.undelivered.behind,
            ),
            Column(
                "unseeable: silent",
                "the participant lacked the message, but sent nothing before the "
                "message or nothing after the 300 s, or was silent for more than 300 s "
                "after the first frame that shows the lack",
                lambda f: f.undelivered.unseeable,
            ),
        ),
    ),
    Section(
        "Deliveries",
        "This table counts pairs of a message and a participant.\n"
        "Each column name gives the outcome that the monitor reports, then the "
        "transmission that really arrived: the first, a later one, or none.\n"
        "The outcome *lost* includes losses that were retracted.\n"
        "If the participant missed the first transmission, but received a later one "
        "before its next frame, the pair counts in the column *first pass, later*.",
        (
            Column(
                "first pass, first",
                "",
                _delivered("first_pass", "first"),
            ),
            Column(
                "first pass, later",
                "",
                _delivered("first_pass", "later"),
            ),
            Column(
                "first pass, none",
                "",
                _delivered("first_pass", "none"),
            ),
            Column(
                "recovered, later",
                "",
                _delivered("recovered", "later"),
            ),
            Column(
                "recovered, first",
                "",
                _delivered("recovered", "first"),
            ),
            Column(
                "lost, later",
                "",
                _delivered("lost", "later"),
            ),
            Column(
                "lost, first",
                "",
                _delivered("lost", "first"),
            ),
            Column("lost, none", "", _delivered("lost", "none")),
            Column("first-pass ratio", "the ratio that the monitor reports", _ratio(0)),
            Column(
                "really",
                "the real first-pass ratio, which is the share of pairs in which the "
                "first transmission arrived. A pair consists of a message that a tap "
                "saw and a participant who was present",
                _ratio(1),
            ),
            Column(
                "error",
                "*first-pass ratio* minus *really*, in percentage points",
                _ratio_error,
            ),
        ),
    ),
    Section(
        "Acknowledgements",
        "In the simulator's truth, a filter has no false positives: it contains "
        "exactly the messages that its participant received.",
        (
            Column(
                "definite",
                "definitely acknowledged messages",
                lambda f: f.acknowledgements.definite,
            ),
            Column(
                "differing",
                "messages that only the monitor or only the truth counts as definite",
                lambda f: f.acknowledgements.differing,
            ),
            Column(
                "error in ms",
                "sum of the differences between the monitor's latencies and the real "
                "latencies",
                lambda f: f.acknowledgements.error_ms,
            ),
            Column(
                "wrong",
                "messages counted as definite although only the sender had them",
                lambda f: f.acknowledgements.wrong,
            ),
            Column(
                "probable",
                "probably acknowledged messages",
                lambda f: f.acknowledgements.probable,
            ),
            Column(
                "excess",
                "number by which *probable* exceeds the truth's number of probably "
                "acknowledged messages, summed over the channels",
                lambda f: f.acknowledgements.excess,
            ),
            Column(
                "unacknowledged",
                "messages rightly reported as unacknowledged: by the deadline, only "
                "the sender had them",
                lambda f: f.acknowledgements.silent,
            ),
            Column(
                "unshown",
                "messages reported as unacknowledged although another participant had "
                "them. Too few frames showed this",
                lambda f: f.acknowledgements.unshown,
            ),
        ),
    ),
    Section(
        "Repairs and retries",
        "This table counts rebroadcasts.\n"
        "Each column name gives two causes of the rebroadcasts: the cause that the "
        "monitor reports, then the real cause.\n"
        "If the tap missed the request, the monitor counts a repair as a retry.",
        (
            Column(
                "repair, repair",
                "",
                called("repair", Cause.REPAIR),
            ),
            Column(
                "repair, retry",
                "",
                called("repair", Cause.RETRY),
            ),
            Column(
                "retry, repair",
                "",
                called("retry", Cause.REPAIR),
            ),
            Column("retry, retry", "", called("retry", Cause.RETRY)),
            Column(
                "recall",
                "share of the real repairs that the monitor counts as repairs",
                lambda f: percent(
                    f.rebroadcasts["repair", Cause.REPAIR],
                    f.rebroadcasts["retry", Cause.REPAIR],
                ),
            ),
            Column(
                "precision",
                "share of real repairs among the rebroadcasts that the monitor counts "
                "as repairs",
                lambda f: percent(
                    f.rebroadcasts["repair", Cause.REPAIR],
                    f.rebroadcasts["repair", Cause.RETRY],
                ),
            ),
        ),
    ),
    Section(
        "False alarms",
        "For each verdict, this table shows the minutes of event time, summed over all "
        "channels.\n"
        "In these scenarios, the network loses at most 1 % of the transmissions.\n"
        "In `quiet`, `tap-blind` and `phones`, participants really lack messages, so "
        "almost all minutes under `degraded` are right in these scenarios.",
        (
            Column("ok", "", minutes("ok")),
            Column("quiet", "", minutes("quiet")),
            Column("warming up", "", minutes("warming_up")),
            Column("degraded", "`degraded` for any reason", minutes("degraded")),
            Column(
                "failing: lost",
                "`failing`, because a message was lost to all participants",
                minutes("failing", "lost"),
            ),
            Column(
                "failing: undelivered",
                "`failing`, because more than 1 % of the deliveries were lost",
                minutes("failing", "undelivered"),
            ),
            Column(
                "failing: unacknowledged",
                "`failing`, because more than 5 % of the messages were unacknowledged",
                minutes("failing", "unacknowledged"),
            ),
            Column("blind", "", minutes("blind")),
            Column(
                "false losses",
                "messages wrongly reported as lost or undelivered",
                lambda f: f.losses.wrong + f.undelivered.wrong,
            ),
            Column(
                "false blame",
                "messages reported as unacknowledged although another participant "
                "had them",
                lambda f: f.acknowledgements.unshown,
            ),
        ),
        CALM,
    ),
    Section(
        "Minutes under a wrong verdict",
        "A verdict is wrong if no real event explains it.\n"
        "The table shows the minutes of event time under a wrong verdict, summed over "
        "all channels.\n"
        "`failing` and `degraded` are right while real events of the last ten minutes "
        "explain the verdict's reason.\n"
        "`ok` and `quiet` are right if no real loss was found in the last ten "
        "minutes.\n`blind` and `warming_up` do not judge the channel.",
        (
            Column("minutes", "all minutes", lambda f: all_minutes(f.verdicts_ms)),
            Column("wrong", "", lambda f: all_minutes(f.wrong_verdicts_ms)),
            Column("share", "", wrong_share),
            *(
                Column(
                    f"wrong: {verdict}, {reason}",
                    "",
                    _wrong_minutes(verdict, reason),
                )
                for verdict, reason in (
                    ("failing", "lost"),
                    ("failing", "undelivered"),
                    ("failing", "unacknowledged"),
                    ("degraded", "undelivered"),
                    ("degraded", "recovering"),
                    ("degraded", "unacknowledged"),
                    ("degraded", "repair_expired"),
                )
            ),
            Column(
                "wrong: verdict ok or quiet",
                "",
                lambda f: all_minutes(
                    {
                        key: ms
                        for key, ms in f.wrong_verdicts_ms.items()
                        if key[0] in ("ok", "quiet")
                    }
                ),
            ),
        ),
    ),
)
"""All tables except the goals and catching up."""
