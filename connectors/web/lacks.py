"""Lists for each participant how many messages it lacks, and since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from connectors.web import naming, words
from connectors.web.extras import extras_of
from connectors.web.incident_words import KINDS, follows
from sds_core.observer.incidents import ChannelIncident, IncidentKind
from sds_core.observer.kinds import AnyKind
from sds_core.observer.lacking import Lack, lacks_of, standing_of
from sds_core.observer.snapshot import Snapshot

READ_INCIDENTS = 1_000
"""Maximum number of unresolved incidents that are grouped, newest first."""

LISTED_LACKS = 20


@dataclass(frozen=True, slots=True)
class LackWords:
    """A group of messages with the same problem; addresses are relative to the root.

    Attributes:
        doubt: Number of the group's messages that taps may have missed; empty for zero.
        channel_href: Address of the view's page; empty if the view no longer exists.
        href: Address of the list of these messages; empty if the view no longer exists
            and has a long id.
        runbook_href: Address of the runbook; empty if none exists.
    """

    key: str
    kind: str
    sentence: str
    doubt: str
    channel: str
    channel_href: str
    href: str
    runbook_href: str


@dataclass(frozen=True, slots=True)
class LackGroups:
    """The listed groups of a page, and the number of hidden groups.

    Attributes:
        groups: At most `LISTED_LACKS` groups, most severe first.
        messages: Number of messages in all groups; each message counts once.
        more: Whether incidents that were not grouped may add further messages.
        overlap: Whether a message is in several groups.
    """

    groups: list[LackWords]
    hidden: int
    messages: int
    more: bool
    overlap: bool

    @property
    def count(self) -> str:
        """Text with the number of messages."""
        if self.more:
            return f"more than {words.counted(self.messages, 'message')}"
        return words.counted(self.messages, "message")


@dataclass(frozen=True, slots=True)
class Lacks:
    """All groups of a page.

    Attributes:
        now: Groups of messages that the monitor still follows.
        past: Groups of messages that the monitor no longer follows.
        read: Number of incidents that were grouped.
        more: Whether more than `READ_INCIDENTS` incidents exist.
    """

    now: LackGroups
    past: LackGroups
    read: int
    more: bool


def group_words(
    snapshot: Snapshot,
    kind: AnyKind,
    found: Iterable[ChannelIncident],
    participant: str = "",
) -> Lacks:
    """Group unresolved incidents by participant and problem.

    `found` has at most `READ_INCIDENTS` + 1 unresolved incidents, newest first.
    `participant` is the id or key of one participant; empty for all.
    """
    views = snapshot.views[kind.prefix].totals
    standing = standing_of(found, partial(follows, snapshot, kind=kind))
    more = len(standing) > READ_INCIDENTS
    read = standing[:READ_INCIDENTS]
    lacks = [
        one
        for one in lacks_of(read, kind.personal)
        if not participant or is_participant(one.participant or "", participant)
    ]

    def groups(followed: bool) -> LackGroups:
        some = [one for one in lacks if one.followed is followed]
        named = sum(one.messages for one in some)
        if followed:
            some = list(extras_of(kind).lacks(views, some))
        messages = {(o.channel, o.message_id) for o in read if o.followed is followed}
        return LackGroups(
            [_words(snapshot, one, kind) for one in some[:LISTED_LACKS]],
            hidden=max(0, len(some) - LISTED_LACKS),
            messages=len(messages),
            # All unread incidents are older than the last incident in `read`.
            more=more and (read[-1].followed or not followed),
            overlap=named > len(messages),
        )

    return Lacks(groups(True), groups(False), len(read), more)


def is_participant(name: str, wanted: str) -> bool:
    """Whether `wanted` is a participant's id or the key of this id."""
    return wanted in (name, naming.short_key(name))


def _words(snapshot: Snapshot, lack: Lack, kind: AnyKind) -> LackWords:
    # A list of incidents by participant has only undelivered messages: see
    # `IncidentQuery`.
    is_listed = lack.kind is IncidentKind.UNDELIVERED
    participant = lack.participant if is_listed else None
    href = naming.unresolved_href(kind, lack.channel, lack.kind, participant)
    channel_href = naming.href_if_known(snapshot, lack.channel, kind)
    since = words.moment(lack.since_ms, snapshot.clock_ms)
    runbook = kind.runbooks.get(lack.kind, "")
    name = () if lack.participant is None else (lack.participant,)
    return LackWords(
        key=naming.short_key(
            " ".join((lack.channel, lack.kind, *name, str(lack.followed)))
        ),
        kind=KINDS[lack.kind],
        sentence=lack.sentence(words.short(lack.participant or ""), since),
        doubt=f"taps may have missed {words.number(lack.tap_hole)} of the messages"
        if lack.tap_hole
        else "",
        channel=naming.called(snapshot, lack.channel, kind),
        channel_href=channel_href,
        href="" if naming.needs_key(lack.channel) and not channel_href else href,
        runbook_href=runbook and naming.runbook_href(runbook, lack.channel),
    )
