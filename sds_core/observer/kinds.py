"""Interfaces for views, for kinds of view, and for observed protocols.

A view tracks one thing that the monitor observes: an SDS channel, a tap, or the dead
letters of a partition. All views of one kind share a `Kind`, which defines how digests,
totals and state are read, and where events are sent. A `TrafficProtocol` defines how a
record is decoded to a frame, and to which view the frame belongs. The streaming job
handles traffic only through kinds and protocols, so it contains no code for a single
protocol. `sds_core/observer/protocols.py` lists the protocols.
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
            DamagedBlob: The blob differs from the blob that `to_blob` returned.
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
        """Encode the view in `Kind.blob_version`; the totals are first in the blob."""

    def forget(self) -> Sequence[_EventOut]:
        """Reset the view to a new view, and return its last events.

        Returns:
            The last events. If the view's kind has `Kind.remains`, one of these events
            is `Forgotten`, unless the view was already forgotten.
        """

    @property
    def next_deadline_ms(self) -> int | None:
        """When `apply` must be called even without digests, Unix ms; None if never."""

    @property
    def is_forgotten(self) -> bool:
        """Whether the view remembers nothing, so its state can be removed."""

    @property
    def totals(self) -> _TotalsOut:
        """The view's figures, counted since the view was created or forgotten.

        A restart from the job's checkpoint does not reset the counts.
        """


class Outlet(enum.Enum):
    """Destination of an event that a view emits."""

    INCIDENTS = "incidents"
    """The incidents in the checkpoint's ledger, and the history, if it is
    configured."""
    MINUTES = "minutes"
    """The figures of the last hour in the checkpoint's ledger, and the history, if it
    is configured."""
    DETAILS = "details"
    """The definite acknowledgements in the report. Without the option
    ``--report-detail``, the job drops these events."""
    DEAD_LETTERS = "dead letters"
    """The dead-letter topic, if it is configured."""
    FORGOTTEN = "forgotten"
    """The sums over forgotten views, to which the view's last figures are added."""


@dataclass(frozen=True, slots=True)
class Grouping(Generic[Totals, Part]):
    """How the totals of views are converted to the published totals of groups.

    Traffic is divided into views so that the state of a view stays small. Operators do
    not know these views, but groups. A group may have parts in several views.

    Attributes:
        totals: Type of the totals of a group; the type must implement
            `sds_core.observer.view_totals.ViewTotals`. `Kind.figures` is the table of
            these totals.
        split: Divides a view's totals by group. Returns the part of each group, by
            group name.
        join: Takes the parts of a group from all views: one or more parts, in any
            order. Returns the group's totals: counts are added, and the verdict is
            judged from the joined figures.
        name_of: Returns the name of an event's group. Incidents must be
            `sds_core.observer.incidents.GroupIncident`, and minutes a subclass of
            `sds_core.observer.minutes.GroupMinute`. All views that emit figures of the
            same minute must emit them in the same batch.
        changed: Takes a view. Returns its totals, without the groups that the view's
            last `apply` cannot have changed, so that a batch with few changes is
            cheap. If None, each batch processes all groups of a view.
        leftovers: Names of groups for traffic whose own group is unknown, or is beyond
            the maximum number of groups. Lists show the groups in `leftovers` last.
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
        prefix: First part of the views' keys. A prefix must never change, because
            checkpoints contain it.
        digest: Type of the digests. Each digest has the data of one view from one chunk
            of records.
        blob_version: Version of the blobs that this release writes. Each kind has its
            own sequence of versions.
        checksum_since: Blobs of this version or a later version have a checksum.
        label_file: Name of the file from which the ledger imports the names of views
            that have their own metric label; releases up to 0.15 wrote this file. Empty
            if no view has its own label.
        label_budget: Maximum number of views that have their own metric label; if None,
            the option ``--label-budget`` of the job applies.
        in_channel_table: Whether the operator's channel table can have settings for the
            views.
        outlets: The `Outlet` of each type of event.
        is_known: Takes a view's totals. Returns whether the view is published.
        figures: The table of the views' figures; None if single views are not
            published. The kind of a `TrafficProtocol` must have a table.
        remains: Takes the totals of a forgotten view. Returns only those counts that
            the sums over all views still include. None if views are never forgotten, or
            if no sum is published.
        ignores_forget_ms: Whether views are forgotten after the retention window, for
            any value of `forget_ms`.
        grouping: How the totals of views are joined to totals of groups. If set, groups
            have the labels, figures and incidents, and views are never forgotten. None
            if the views themselves are published.
        explain: Returns one sentence with the reason for an incident.
        runbooks: Name of the runbook for each kind of incident.
        causes: Returns the likely causes of a bad verdict, from the totals of a view or
            group; empty if the totals suggest no cause clearly enough.
        personal: Kinds of incidents that concern single participants, which
            `Incident.lacking` names.
        at_root: Whether pages and API show the views under paths without a prefix, such
            as `/` and `/api/v1/incidents`. The paths of other kinds contain
            `/views/<prefix>`. The views of a kind at the root are also at the top level
            of the report, and commands use this kind by default. At most one kind is at
            the root.
        has_objectives: Whether the SLOs of the channel table apply to the views.
        is_audited: Whether an audit of the mirror checks that the mirror contains the
            messages of the views.
        excused: Returns the excused findings in the window of a view's verdict: one
            result for each kind of finding that has at least one excused finding.

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
    ignores_forget_ms: bool = False
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
            ValueError: Single views are not published, so the kind has no table.
        """
        if self.figures is None:
            message = f"views of kind {self.prefix} have no figures"
            raise ValueError(message)
        return self.figures

    @property
    def names(self) -> Names:
        """The names in the table of the views' figures; the kind must have a table."""
        return self.published.names

    @property
    def events_type(self) -> Any:
        """Type with which msgspec decodes the list of a view's events in one batch."""
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
        """Add a frame, or the view's part of a frame.

        `value` is the encoded form of the whole frame. `arrival` states how the frame
        arrived.
        """

    def finish(self) -> _DigestOut:
        """Return the digest of all added frames, in a form that msgspec can encode."""


class FrameReader(Protocol):
    """Adds frames to digests without decoding the frames, where possible."""

    def add(self, key: bytes | None, value: bytes, arrival: Arrival) -> int:
        """Add the frame in a record to the digest for its view.

        Returns:
            Approximate number of bytes of the frame that the digest keeps; 0 if the
            reader did not add the frame. A frame that was not added may still be valid,
            so the caller must decode it.
        """


@dataclass(frozen=True, slots=True)
class TrafficProtocol(Generic[Frame]):
    """A protocol whose traffic the monitor observes.

    Attributes:
        name: Value of the record header ``protocol``; records without this header have
            the protocol `record.DEFAULT_PROTOCOL`.
        decode: Returns the frame of a record, from the record's value and headers. If
            the value is not a frame, `decode` raises a subclass of
            `sds_core.wire.UndecodableFrame` with the reason of the dead letter. If a
            header that the protocol needs is missing or invalid, `decode` raises
            `record.BadHeader`.
        fits_key: Takes a record's key and a frame. Returns whether a record with this
            key may contain the frame.
        view_name: Returns the name of the view to which a frame belongs. If `split` is
            set, the name occurs only in the error for a record with a wrong key.
        new_digester: Creates a digester for one view and one Kafka partition.
        new_reader: Creates the reader of one chunk of records. Takes the Kafka
            partition, and a dict of digesters by view name, to which the reader adds
            new digesters. `new_reader` is None if all frames must be decoded.
        split: Divides a frame into parts for several views. Returns a pair for each
            part: the name of a view, and the part for this view's digester. `split` is
            None if a frame always belongs to one view.
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
    """Return copies without the kinds' `Kind.figures`; see `Kinds.without_figures`."""
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
        """Return copies of the kinds without their tables of figures.

        Spark's Python workers unpickle the kinds for every task. They never read the
        tables, so unpickling the tables would waste time.
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
