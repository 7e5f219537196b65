"""Interfaces for views, for kinds of view, and for observed protocols.

A view tracks one thing that the monitor observes: an SDS channel, a tap, or the dead
letters of a partition. All views of one kind share a `Kind`, which defines how digests,
totals and state are read, and where events are sent. A `TrafficProtocol` defines how a
record is decoded to a frame, and to which view the frame belongs. The streaming job
uses only kinds and protocols; `sds_core/observer/protocols.py` lists the protocols.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any, Generic, Protocol, Self, TypeVar

from sds_core.observer.causes import Cause, Surroundings
from sds_core.observer.excused import ExcusedFindings, Excusing
from sds_core.observer.figure_table import FigureTable, Names
from sds_core.observer.incidents import Incident, IncidentKind, explain
from sds_core.observer.record import Arrival, Headers
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.tracing import Tracing

Digest = TypeVar("Digest")
Totals = TypeVar("Totals")
Event = TypeVar("Event")
Frame = TypeVar("Frame")
Part = TypeVar("Part")
_DigestIn = TypeVar("_DigestIn", contravariant=True)
_DigestOut = TypeVar("_DigestOut", covariant=True)
_TotalsOut = TypeVar("_TotalsOut", covariant=True)
_EventOut = TypeVar("_EventOut", covariant=True)
_FrameIn = TypeVar("_FrameIn", contravariant=True)


class View(Protocol[_DigestIn, _TotalsOut, _EventOut]):
    """The state of one observed thing, with its totals.

    A view reads no clock and does no I/O. Its totals do not depend on how the digests
    are distributed over calls of `apply` (docs/figures.md, 3).
    """

    def __init__(self, settings: ObserverSettings = DEFAULTS) -> None:
        """Create a view that has received no digests."""

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> Self:
        """Restore the view that `to_blob` encoded.

        Raises:
            UnknownBlobVersion: A newer release wrote the blob, so this release cannot
                read it.
            DamagedBlob: The blob was changed after a release wrote it.
        """

    def apply(self, digests: Iterable[_DigestIn], clock_ms: int) -> Sequence[_EventOut]:
        """Process digests, then set the clock to the watermark.

        Args:
            digests: Digests of one batch, in any order.
            clock_ms: Watermark of the batch, Unix ms of event time.

        Returns:
            The events of this call; each event is returned only once.
        """

    def to_blob(self) -> bytes:
        """Encode the whole view, totals first, in the blob version of its kind."""

    def forget(self) -> Sequence[_EventOut]:
        """End the view on request; afterwards, it is like a new view.

        Returns:
            The view's last events. If its kind has `remains`, one of them is
            `Forgotten`.
        """

    @property
    def next_deadline_ms(self) -> int | None:
        """When `apply` is due even without digests, Unix ms; None if never."""

    @property
    def is_forgotten(self) -> bool:
        """Whether the view remembers nothing, so its state can be removed."""

    @property
    def totals(self) -> _TotalsOut:
        """The figures, counted since the first batch of the job's checkpoint."""


class Outlet(enum.Enum):
    """Destination of an event that a view emits."""

    INCIDENTS = "incidents"
    """The store of incidents beside the checkpoint, and the history."""
    MINUTES = "minutes"
    """The figures of the last hour beside the checkpoint, and the history, if it is
    configured."""
    DETAILS = "details"
    """The report's definite acknowledgements; without ``--report-detail``, the job
    drops them."""
    DEAD_LETTERS = "dead letters"
    """The dead-letter topic, if it is configured."""
    FORGOTTEN = "forgotten"
    """The sums over forgotten views."""


@dataclass(frozen=True, slots=True)
class Grouping(Generic[Totals, Part]):
    """How the totals of views are converted to the published totals of groups.

    Traffic is divided into views so that the state of a view stays small. Operators,
    however, know groups, not views. A group may have parts in several views.

    Attributes:
        totals: Type of the totals of a group, which must satisfy
            `sds_core.observer.view_totals.ViewTotals`; `Kind.figures` is their table.
        split: Divides a view's totals into the totals of each group, by group name.
        join: Joins the parts of a group from all views: at least one part, in any
            order. Counts are added, and the verdict is judged again.
        name_of: Returns the name of an event's group. Incidents must be
            `sds_core.observer.incidents.GroupIncident`, and minutes a subclass of
            `sds_core.observer.minutes.GroupMinute`. All views must emit their figures
            of a minute in the same batch.
        changed: Returns a view's totals without the groups that its last `apply` cannot
            have changed. The cost of a batch is thus proportional to its changes. If
            None, each batch has the totals of all groups.
        leftovers: Names of groups that collect the traffic of unknown groups; lists
            show these groups last.
    """

    totals: type[Part]
    split: Callable[[Totals], Mapping[str, Part]]
    join: Callable[[Sequence[Part]], Part]
    name_of: Callable[[Any], str]
    changed: Callable[[Any], Totals] | None = None
    leftovers: frozenset[str] = frozenset()


def _always(_: Any) -> bool:
    return True


def _none(*_: Any) -> Sequence[Any]:
    return ()


@dataclass(frozen=True, slots=True)
class Kind(Generic[Digest, Totals, Event]):
    """What the job needs to know about the views of one kind.

    Attributes:
        prefix: First part of the views' keys. Never change it, because checkpoints
            contain it.
        digest: Type of the digest of one chunk of records for one view.
        blob_version: Version of the blobs that this release writes. Each kind has its
            own sequence of versions.
        checksum_since: First version of blobs that have a checksum.
        label_file: Name of a file beside the checkpoint; the file lists the views with
            their own metric label. Empty if no view has a label.
        label_budget: Maximum number of views with a metric label; if None, the option
            ``--label-budget`` of the job applies.
        in_channel_table: Whether the channel table of the operator applies to the
            views.
        outlets: The `Outlet` of each type of event.
        is_known: Whether a view with these totals is published.
        figures: The table of the views' figures; None if single views are not
            published. A protocol's kind must have a table.
        remains: Returns those counts of a forgotten view that remain in sums over all
            views. None if views are never forgotten, or if no sum is published.
        grouping: How views are joined to groups. If set, labels, figures and incidents
            are those of groups, and views are never forgotten. None if the views
            themselves are published.
        explain: Returns one sentence with the reason for an incident.
        runbooks: Name of the runbook for each kind of incident.
        causes: Returns the likely causes of a bad verdict, from the totals of a view or
            group; empty if no cause is very likely.
        personal: Kinds of incidents that name each affected participant.
        at_root: Whether pages and API have the views at their root, such as `/` and
            `/api/v1/incidents`, instead of under `/views/<prefix>`. If so, the views
            are also at the top level of the report, and commands use this kind by
            default. At most one kind is at the root.
        has_objectives: Whether the SLOs of the channel table apply to the views.
        is_audited: Whether audits of a mirror compare the messages of the views.
        excused: Returns the findings in a verdict's window, one result for each kind of
            finding. A kind of finding is omitted if none of its findings is excused.

    Raises:
        ValueError: Both `grouping` and `remains` are set.
    """

    prefix: str
    digest: type[Digest]
    view: type[View[Digest, Totals, Event]]
    totals: type[Totals]
    blob_version: int
    checksum_since: int = 1
    label_file: str = ""
    label_budget: int | None = None
    in_channel_table: bool = False
    outlets: Mapping[type, Outlet] = field(default_factory=dict)
    is_known: Callable[[Totals], bool] = _always
    figures: FigureTable[Any] | None = None
    remains: Callable[[Totals], Totals] | None = None
    grouping: Grouping[Totals, Any] | None = None
    explain: Callable[[Incident, ObserverSettings], str] = explain
    runbooks: Mapping[IncidentKind, str] = field(default_factory=dict)
    causes: Callable[[Any, Surroundings], Sequence[Cause]] = _none
    personal: frozenset[IncidentKind] = frozenset()
    at_root: bool = False
    has_objectives: bool = False
    is_audited: bool = False
    excused: Callable[[Any, Excusing, ObserverSettings], Sequence[ExcusedFindings]] = (
        _none
    )

    def __post_init__(self) -> None:
        """Check for contradictions."""
        if self.grouping is not None and self.remains is not None:
            message = (
                f"kind {self.prefix} has both `grouping` and `remains`, but at most "
                "one is allowed"
            )
            raise ValueError(message)

    def key(self, name: str) -> str:
        """Return the key of the view with this name."""
        return f"{self.prefix}:{name}"

    @property
    def published(self) -> FigureTable[Any]:
        """The table of the views' figures.

        Raises:
            ValueError: The views are not published one by one, so they have no table.
        """
        if self.figures is None:
            message = f"views of kind {self.prefix} have no figures"
            raise ValueError(message)
        return self.figures

    @property
    def names(self) -> Names:
        """The names in the table `published`. The kind must have this table."""
        return self.published.names

    @property
    def events_type(self) -> Any:
        """The type, for msgspec, of the list of a view's events in one batch."""
        if not self.outlets:
            return list[None]
        return list[reduce(or_, self.outlets)]  # type: ignore[misc]

    @property
    def minute(self) -> type | None:
        """The type of the minutes that views emit; None if they emit none."""
        found = (one for one, to in self.outlets.items() if to is Outlet.MINUTES)
        return next(found, None)

    @property
    def has_findings(self) -> bool:
        """Whether the views emit incidents or minutes."""
        return not {Outlet.INCIDENTS, Outlet.MINUTES}.isdisjoint(self.outlets.values())


AnyKind = Kind[Any, Any, Any]


class Digester(Protocol[_FrameIn, _DigestOut]):
    """Builds the digest for one view, from its frames in one chunk of records."""

    def add(self, frame: _FrameIn, value: bytes, arrival: Arrival) -> None:
        """Add a frame; `value` is its encoded form, `arrival` states how it arrived."""

    def finish(self) -> _DigestOut:
        """Return the digest of all added frames, in a form that msgspec can encode."""


class FrameReader(Protocol):
    """Adds frames to digests; where possible, it does not decode the frames."""

    def add(self, key: bytes | None, value: bytes, arrival: Arrival) -> int:
        """Add the frame in a record to the digest for its view.

        Returns:
            Approximate number of bytes of the frame that the digest keeps; 0 if the
            reader did not add the frame. Such a frame may still be valid.
        """


@dataclass(frozen=True, slots=True)
class TrafficProtocol(Generic[Frame]):
    """A protocol whose traffic the monitor observes.

    Attributes:
        name: Value of the record header ``protocol``; records without this header have
            the protocol `record.DEFAULT_PROTOCOL`.
        decode: Returns the frame of a record, from value and headers. If the value is
            not a frame, `decode` raises a subclass of `sds_core.wire.UndecodableFrame`
            with the reason of the dead letter. If a header that the protocol needs is
            missing, it raises `record.BadHeader`.
        fits_key: Whether a record with this key may contain this frame.
        view_name: Returns the name of the view to which a frame belongs.
        new_digester: Creates a digester for one view and one Kafka partition.
        new_reader: Creates the reader of one chunk. Arguments: the Kafka partition, and
            a dict of digesters by view name, to which the reader adds new digesters.
            None if all frames must be decoded.
        split: Divides a frame among views. Returns pairs: the name of a view, and the
            part for its digester. None if the whole frame belongs to one view.
        tracing: How single messages are traced; None if the protocol has no tracing.
    """

    name: str
    decode: Callable[[bytes, Headers], Frame]
    fits_key: Callable[[bytes, Frame], bool]
    view_name: Callable[[Frame], str]
    new_digester: Callable[[int], Digester[Frame, Any]]
    kind: AnyKind
    new_reader: Callable[[int, dict[str, Any]], FrameReader] | None = None
    split: Callable[[Frame], Iterable[tuple[str, Any]]] | None = None
    tracing: Tracing[Frame] | None = None


AnyProtocol = TrafficProtocol[Any]


def without_figures(protocols: Iterable[AnyProtocol]) -> list[AnyProtocol]:
    """Return copies with all tables of figures removed; see `Kinds.without_figures`."""
    return [replace(one, kind=replace(one.kind, figures=None)) for one in protocols]


class UnknownKind(ValueError):
    """A checkpoint contains views of a kind that this job does not know."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        super().__init__(
            f"the checkpoint has views of kind {prefix!r:.80}, which this release "
            "does not know: run the release that wrote the checkpoint, or a later "
            "release"
        )


class Kinds:
    """The kinds of view of one job; each kind has a different prefix."""

    def __init__(self, kinds: Iterable[AnyKind]) -> None:
        self._by_prefix = {kind.prefix: kind for kind in kinds}

    def __iter__(self) -> Iterator[AnyKind]:
        """Iterate over the kinds in the order in which they were given."""
        return iter(self._by_prefix.values())

    def without_figures(self) -> Kinds:
        """Return copies of the kinds, with all tables of figures removed.

        Spark's Python workers unpickle the kinds for every task, but they never read a
        figure.
        """
        return Kinds([replace(kind, figures=None) for kind in self])

    def of(self, prefix: str) -> AnyKind:
        """Return the kind that has this prefix.

        Raises:
            UnknownKind: No kind has this prefix.
        """
        kind = self._by_prefix.get(prefix)
        if kind is None:
            raise UnknownKind(prefix)
        return kind

    def split(self, key: str) -> tuple[AnyKind, str]:
        """Return the kind and the name of the view with this key.

        Raises:
            UnknownKind: No kind has the key's prefix.
        """
        prefix, _, name = key.partition(":")
        return self.of(prefix), name
