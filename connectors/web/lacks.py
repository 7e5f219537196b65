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
"""Maximum number of unresolved incidents that are grouped. If more exist, only the
newest are grouped."""

LISTED_LACKS = 20


@dataclass(frozen=True, slots=True)
class LackWords:
    """A group of messages with the same problem, in words.

    Addresses are relative to the root of the site.

    Attributes:
        doubt: How many of the messages taps may have missed; empty if none.
        channel_href: Address of the view's page; empty if the view no longer exists.
        href: Address of the list of the group's incidents; empty if the view no longer
            exists and its id does not fit into an address.
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
    """The groups that a page lists.

    Attributes:
        groups: At most `LISTED_LACKS` groups, most severe first.
        hidden: Number of groups that are not listed.
        messages: Number of messages in all groups, listed or hidden. A message that is
            in several groups counts once.
        more: Whether `messages` may be too small, because some incidents were not
            grouped.
        overlap: Whether at least one message is in several groups.
    """

    groups: list[LackWords]
    hidden: int
    messages: int
    more: bool
    overlap: bool

    @property
    def count(self) -> str:
        """The number of messages, in words."""
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
        more: Whether more than `READ_INCIDENTS` unresolved incidents exist.
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
            # All incidents that are not in `read` are older than its last incident. If
            # that incident is no longer followed, they are not followed either.
            more=more and (read[-1].followed or not followed),
            overlap=named > len(messages),
        )

    return Lacks(groups(True), groups(False), len(read), more)


def is_participant(name: str, wanted: str) -> bool:
    """Whether `wanted` is the participant id `name` or the key of `name`."""
    return wanted in (name, naming.short_key(name))


def _words(snapshot: Snapshot, lack: Lack, kind: AnyKind) -> LackWords:
    # Only a list of undelivered messages can be limited to a participant: see
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
