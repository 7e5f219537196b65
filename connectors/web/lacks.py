"""Who lacks how many messages since when, in one sentence for each group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

from connectors.web import words
from connectors.web.following import follows
from connectors.web.incident_words import KINDS, RUNBOOKS
from connectors.web.naming import (
    called,
    channel_query,
    href_if_known,
    is_long,
    short_key,
)
from connectors.web.participants import table_of
from sds_core.observer.incidents import ChannelIncident, IncidentKind
from sds_core.observer.kinds import AnyKind
from sds_core.observer.lacking import (
    Lack,
    lacks_of,
    standing_of,
)
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.participant_figures import ParticipantFigures
from sds_core.observer.snapshot import Snapshot

READ_INCIDENTS = 1_000
"""Standing incidents that are grouped, at most; those found last."""

LISTED_LACKS = 20
"""Groups on a page; the others are counted."""


@dataclass(frozen=True, slots=True)
class LackWords:
    """Messages with the same problem, and for whom, as a page shows them.

    Attributes:
        key: Identifies the group within the page.
        kind: The problem, in words.
        sentence: Who lacks how many messages since when.
        doubt: How many of them the taps may have missed; empty if none.
        channel: Display name of the channel.
        channel_href: The channel's page, relative to the root of the site; empty if
            the channel has ended.
        href: The list of these messages, relative to the root of the site; empty if
            the channel has ended and has a long id.
        runbook: Name of the runbook that says what to do; empty without one.
    """

    key: str
    kind: str
    sentence: str
    doubt: str
    channel: str
    channel_href: str
    href: str
    runbook: str


@dataclass(frozen=True, slots=True)
class LackGroups:
    """Some groups of a page.

    Attributes:
        groups: At most `LISTED_LACKS`, the gravest first.
        hidden: Number of further groups.
        messages: Number of messages in all groups; one with several problems counts
            once.
        more: Whether there are more than these.
        overlap: Whether a message is in several groups, so that these add up to more.
    """

    groups: list[LackWords]
    hidden: int
    messages: int
    more: bool
    overlap: bool

    @property
    def count(self) -> str:
        """Number of messages in words."""
        if self.more:
            return f"more than {words.counted(self.messages, 'message')}"
        return words.counted(self.messages, "message")


@dataclass(frozen=True, slots=True)
class Lacks:
    """All groups of a page.

    Attributes:
        now: Messages that may still be seen to arrive.
        past: Messages that the monitor follows no longer.
        read: Number of incidents that were grouped.
        more: Whether there are more incidents than `READ_INCIDENTS`.
    """

    now: LackGroups
    past: LackGroups
    read: int
    more: bool


def group_words(
    snapshot: Snapshot,
    found: Iterable[ChannelIncident],
    participant: str = "",
    kind: AnyKind = CHANNELS,
) -> Lacks:
    """Group standing incidents by who lacks what.

    Of groups of another protocol, the peers that incidents name are listed.

    Args:
        snapshot: Has the display names of channels, and the clock.
        found: Incidents that have not ended, found last first, at most one more than
            `READ_INCIDENTS`.
        participant: Only what this participant lacks, given by its id or its key;
            empty for all groups.
        kind: Kind of the views.
    """
    is_channels = kind.prefix == CHANNELS.prefix
    standing = standing_of(found, partial(follows, snapshot, kind=kind))
    more = len(standing) > READ_INCIDENTS
    read = standing[:READ_INCIDENTS]
    lacks = [
        one
        for one in lacks_of(read, kind.personal)
        if is_channels or one.participant is not None
        if not participant or is_participant(one.participant or "", participant)
    ]

    def groups(followed: bool) -> LackGroups:
        some = [one for one in lacks if one.followed is followed]
        named = sum(one.messages for one in some)
        if followed and is_channels:
            some = list(_as_of_now(snapshot, some))
        messages = {(o.channel, o.message_id) for o in read if o.followed is followed}
        return LackGroups(
            [_words(snapshot, one, kind) for one in some[:LISTED_LACKS]],
            hidden=max(0, len(some) - LISTED_LACKS),
            messages=len(messages),
            # Those that were not read are older than the last one that was.
            more=more and (read[-1].followed or not followed),
            overlap=named > len(messages),
        )

    return Lacks(groups(True), groups(False), len(read), more)


def is_participant(name: str, wanted: str) -> bool:
    """Whether a participant has an id or a key."""
    return wanted in (name, short_key(name))


def _as_of_now(snapshot: Snapshot, lacks: Iterable[Lack]) -> Iterator[Lack]:
    """Yield the groups with the figures of participants, where these are known.

    Incidents do not name everybody who lacks a message, and the monitor may follow a
    message no longer.
    """
    tables: dict[str, dict[str, ParticipantFigures]] = {}
    for lack in lacks:
        totals = snapshot.views[CHANNELS.prefix].totals.get(lack.channel)
        if lack.participant is None or totals is None:
            yield lack
            continue
        if lack.channel not in tables:
            rows = table_of(totals).participants
            tables[lack.channel] = {row.name: row for row in rows}
        figures = tables[lack.channel].get(lack.participant)
        if figures is None:
            yield lack
        elif figures.undelivered:
            since_ms = figures.lacks_since_ms or lack.since_ms
            yield lack._replace(
                messages=figures.undelivered,
                # The table's time may be that of a message that may still arrive in
                # time, and that of a group lacks incidents that name others.
                since_ms=since_ms if lack.at_least else max(since_ms, lack.since_ms),
                tap_hole=min(lack.tap_hole, figures.undelivered),
                at_least=False,
            )


def _words(snapshot: Snapshot, lack: Lack, kind: AnyKind) -> LackWords:
    is_channels = kind.prefix == CHANNELS.prefix
    since = words.moment(lack.since_ms, snapshot.clock_ms)
    name = () if lack.participant is None else (lack.participant,)
    return LackWords(
        key=short_key(" ".join((lack.channel, lack.kind, *name, str(lack.followed)))),
        kind=KINDS[lack.kind],
        sentence=lack.sentence(words.short(lack.participant or ""), since),
        doubt=f"{words.number(lack.tap_hole)} while the taps were interrupted"
        if lack.tap_hole
        else "",
        channel=called(snapshot, lack.channel, kind),
        channel_href=href_if_known(snapshot, lack.channel, kind),
        href=_href(snapshot, lack) if is_channels else "",
        runbook=(RUNBOOKS if is_channels else kind.runbooks).get(lack.kind, ""),
    )


def _href(snapshot: Snapshot, lack: Lack) -> str:
    known = snapshot.views[CHANNELS.prefix].totals
    if is_long(lack.channel) and lack.channel not in known:
        return ""
    return incidents_href(lack.channel, lack.kind, lack.participant)


def incidents_href(
    channel: str, kind: IncidentKind | None = None, participant: str | None = None
) -> str:
    """Return the address of the list of a channel's unresolved incidents.

    Args:
        channel: Channel id.
        kind: Only incidents of this kind.
        participant: Only messages that this participant lacks.
    """
    chosen = {"standing": "true"}
    if kind is not None:
        chosen["kind"] = kind.value
    if participant is not None:
        chosen["participant"] = short_key(participant)
    rest = urlencode(chosen, errors="surrogatepass")
    return f"incidents?{channel_query(channel, 'channel')}&{rest}"
