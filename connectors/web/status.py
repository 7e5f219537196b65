"""What the status page says: the verdict on the fleet, the job, and one row a channel.

Everything a person reads is made here, once, as text. The template writes it into the
first page and the script writes the same text, taken from the API, into the live one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import quote

from connectors.web import words
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.totals import ChannelTotals, Verdict

_NAMES_IN_SENTENCE = 3

_RANK = {verdict: rank for rank, verdict in enumerate(words.VERDICTS)}


class Level(enum.StrEnum):
    """How the fleet's verdict is to be taken; the page colours by it."""

    STARTING = "starting"
    FINE = "fine"
    WARNING = "warning"
    TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Summary:
    """The verdict on everything, in one sentence.

    Attributes:
        level: `FINE` and `WARNING` only while `Snapshot.ok` holds.
        sentence: For a person; quotes at most three channel ids.
    """

    level: Level
    sentence: str


def summarise(snapshot: Snapshot) -> Summary:
    """The verdict on the fleet and the job."""
    job = snapshot.job
    if job.error:
        return Summary(Level.TROUBLE, f"Query stopped: {words.one_line(job.error)}")
    if not snapshot.primed:
        return Summary(Level.STARTING, "Starting: reading the checkpoint")
    if job.event_time_lag_seconds is None:
        return Summary(Level.STARTING, "Starting: waiting for the first batch")
    if not job.running:
        return Summary(Level.TROUBLE, "Query stopped")

    troubles = [
        found
        for verdict in (Verdict.FAILING, Verdict.BLIND)
        if (found := _channels_with(snapshot, verdict))
    ]
    if snapshot.behind:
        lag = words.more_than(job.event_time_lag_seconds)
        troubles.append(f"behind by {lag}")
    if troubles:
        sentence = "; ".join(troubles)
        return Summary(Level.TROUBLE, sentence[0].upper() + sentence[1:])
    if degraded := _channels_with(snapshot, Verdict.DEGRADED):
        return Summary(Level.WARNING, f"Nothing is failing; {degraded}")
    return Summary(Level.FINE, "Everything is fine")


def _channels_with(snapshot: Snapshot, verdict: Verdict) -> str:
    """As in "2 of 5 channels failing: a, b"; empty if no channel has the verdict."""
    found = sorted(c for c, t in snapshot.channels.items() if t.verdict is verdict)
    if not found:
        return ""
    names = [words.shown(channel) for channel in found[:_NAMES_IN_SENTENCE]]
    if len(found) > len(names):
        names.append(f"{words.number(len(found) - len(names))} more")
    fleet = words.counted(len(snapshot.channels), "channel")
    adjective = words.VERDICTS[verdict].lower()
    return f"{words.number(len(found))} of {fleet} {adjective}: {', '.join(names)}"


def by_trouble(snapshot: Snapshot) -> list[tuple[str, ChannelTotals]]:
    """All channels, the most troubled first, then by id."""
    return sorted(
        snapshot.channels.items(), key=lambda item: (_RANK[item[1].verdict], item[0])
    )


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure of the whole snapshot.

    Attributes:
        key: Its name in `snapshot_text`.
        heading: What the page calls it.
        text: From the snapshot to its words.
    """

    key: str
    heading: str
    text: Callable[[Snapshot], str]


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of every channel.

    Attributes:
        key: Its name in `channel_text`.
        group: Headline figure that it belongs to; columns of one stand together.
        heading: What the table calls it.
        meaning: One line for the legend.
        text: From a channel's totals to its words, in one or two lines.
        grave: Whether anything but zero is a fault.
    """

    key: str
    group: str
    heading: str
    meaning: str
    text: Callable[[ChannelTotals], str]
    grave: bool = False


def _percentile(percent: int) -> Callable[[ChannelTotals], str]:
    return lambda t: words.percentile(t.definite_latency, percent)


def _acknowledged(totals: ChannelTotals) -> str:
    acknowledged = words.number(totals.acknowledged_definite)
    return f"{acknowledged}\nof {words.number(totals.messages)}"


def _responses(totals: ChannelTotals) -> str:
    responses = words.number(totals.repair_responses)
    return f"{responses}\n{words.number(totals.repair_redundant)} redundant"


def _answered(totals: ChannelTotals) -> str:
    ended = totals.repair_answered + totals.repair_expired
    return words.share(totals.repair_answered, ended)


def _undecodable(snapshot: Snapshot) -> str:
    return _breakdown(
        (count, reason.replace("_", " "))
        for reason, count in snapshot.undecodable.items()
    )


def _channels(snapshot: Snapshot) -> str:
    verdicts = [totals.verdict for totals in snapshot.channels.values()]
    return _breakdown(
        (verdicts.count(verdict), word if verdict is Verdict.OK else word.lower())
        for verdict, word in words.VERDICTS.items()
    )


def _breakdown(parts: Iterable[tuple[int, str]]) -> str:
    """The sum and its parts, as in "3: 2 quiet, 1 OK", without those that are 0."""
    counted = [(count, word) for count, word in parts if count]
    total = words.number(sum(count for count, _ in counted))
    listed = ", ".join(f"{words.number(count)} {word}" for count, word in counted)
    return f"{total}: {listed}" if listed else total


FACTS = (
    Fact(
        "lag",
        "Event-time lag",
        lambda s: words.seconds(s.job.event_time_lag_seconds),
    ),
    Fact("behind", "Records behind", lambda s: words.number(s.job.records_behind)),
    Fact("clock", "Last batch up to", lambda s: words.utc(s.clock_ms)),
    Fact(
        "batch",
        "Batch duration, median",
        lambda s: words.percentile(s.job.batch_duration, 50),
    ),
    Fact("undecodable", "Undecodable", _undecodable),
    Fact("channels", "Channels", _channels),
)
"""The monitor's own state, above the table."""

_ACKNOWLEDGEMENT = "Acknowledgement (definite)"
_GAPS = "Missing dependencies"
_REPAIR = "Repair"

COLUMNS = (
    Column(
        "ack_p50",
        _ACKNOWLEDGEMENT,
        "p50",
        "half of the acknowledgements came within this time",
        _percentile(50),
    ),
    Column(
        "ack_p95",
        _ACKNOWLEDGEMENT,
        "p95",
        "95 % of the acknowledgements came within this time",
        _percentile(95),
    ),
    Column(
        "ack_p99",
        _ACKNOWLEDGEMENT,
        "p99",
        "99 % of the acknowledgements came within this time",
        _percentile(99),
    ),
    Column(
        "acknowledged",
        _ACKNOWLEDGEMENT,
        "acknow\N{SOFT HYPHEN}ledged",
        "messages that another participant's causal history names, of all messages",
        _acknowledged,
    ),
    Column(
        "unacknowledged",
        _ACKNOWLEDGEMENT,
        "unack\N{SOFT HYPHEN}nowledged",
        "messages whose deadline passed although others could have acknowledged them",
        lambda t: words.number(t.unacknowledged),
        grave=True,
    ),
    Column(
        "in_flight",
        _ACKNOWLEDGEMENT,
        "in flight",
        "messages not yet acknowledged whose deadline has not passed",
        lambda t: words.number(t.in_flight),
    ),
    Column(
        "gaps_open",
        _GAPS,
        "open now",
        "messages that others refer to and no tap has shown yet",
        lambda t: words.number(t.gaps_open),
    ),
    Column(
        "gaps_opened",
        _GAPS,
        "opened",
        "all that were ever missing for longer than the settle time",
        lambda t: words.number(t.gaps_opened),
    ),
    Column(
        "gaps_late",
        _GAPS,
        "late",
        "came by themselves",
        lambda t: words.number(t.gaps_late),
    ),
    Column(
        "gaps_repaired",
        _GAPS,
        "repaired",
        "came after a repair request",
        lambda t: words.number(t.gaps_repaired),
    ),
    Column(
        "gaps_recovered_late",
        _GAPS,
        "recovered late",
        "came when the last repair request was no longer live",
        lambda t: words.number(t.gaps_recovered_late),
    ),
    Column(
        "gaps_lost",
        _GAPS,
        "lost",
        "never came, and nobody but the sender has shown them",
        lambda t: words.number(t.gaps_lost),
        grave=True,
    ),
    Column(
        "gaps_tap_gap",
        _GAPS,
        "tap gap",
        "never came to a tap, but the network had them",
        lambda t: words.number(t.gaps_tap_gap),
    ),
    Column(
        "repair_answered",
        _REPAIR,
        "answered",
        "repair episodes that ended with a response, of all that ended",
        _answered,
    ),
    Column(
        "repair_requests",
        _REPAIR,
        "requests",
        "repair requests, one per frame and message",
        lambda t: words.number(t.repair_requests),
    ),
    Column(
        "repair_responses",
        _REPAIR,
        "responses",
        "responses to repair requests, and how many of them came on top of another",
        _responses,
    ),
    Column(
        "repair_p50",
        _REPAIR,
        "median time",
        "half of the answers came within this time of the first request",
        lambda t: words.percentile(t.repair_response, 50),
    ),
)
"""The three headline figures, beside the channel and its verdict."""


def groups() -> list[tuple[str, Sequence[Column]]]:
    """The columns under their common headings."""
    return [
        (title, tuple(columns))
        for title, columns in groupby(COLUMNS, key=lambda column: column.group)
    ]


def snapshot_text(snapshot: Snapshot, shown_channels: int) -> dict[str, str]:
    """Everything around the rows, when the table shows so many channels."""
    hidden = len(snapshot.channels) - shown_channels
    return {fact.key: fact.text(snapshot) for fact in FACTS} | {
        "sentence": summarise(snapshot).sentence,
        "none": "" if snapshot.channels else "No channel has been seen yet.",
        "more": f"{words.counted(hidden, 'less troubled channel')} not shown here"
        if hidden
        else "",
    }


def channel_text(channel: str, totals: ChannelTotals) -> dict[str, str]:
    """One row; `href` is relative to the page."""
    return {
        "name": words.shown(channel),
        "href": f"api/v1/channels/{quote(channel, safe='')}",
        "verdict": words.VERDICTS[totals.verdict],
        "reason": words.reason(totals.verdict_reason),
    } | {column.key: column.text(totals) for column in COLUMNS}
