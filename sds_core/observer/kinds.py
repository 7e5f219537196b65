"""Interfaces of views, of kinds of view, and of protocols.

A view tracks one thing that the monitor observes: an SDS channel, a tap, the dead
letters of a partition. All views of one kind share a `Kind`, which defines how digests,
totals and state are read, and where events are sent. A `TrafficProtocol` defines how a
record of the topic becomes a frame, and to which view the frame belongs. The streaming
job uses only kinds and protocols; `sds_core/observer/protocols.py` lists the protocols.
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
    """The state of one observed thing, with its totals as absolute values.

    A view reads no clock and does no input or output. The totals do not depend on how
    the digests are divided into calls of `apply` (docs/figures.md, 3).
    """

    def __init__(self, settings: ObserverSettings = DEFAULTS) -> None:
        """Make a view that has seen nothing."""

    @classmethod
    def from_blob(
        cls, version: int, data: bytes, settings: ObserverSettings = DEFAULTS
    ) -> Self:
        """Restore the view that `to_blob` encoded.

        Raises:
            UnknownBlobVersion: This release cannot read `version`, which is newer.
            DamagedBlob: No release wrote this blob.
        """

    def apply(self, digests: Iterable[_DigestIn], clock_ms: int) -> Sequence[_EventOut]:
        """Add digests, then move the clock to the watermark.

        Args:
            digests: Digests of one batch, in any order.
            clock_ms: Watermark of the batch, Unix ms of event time.

        Returns:
            The events of this call. Each event leaves the view once.
        """

    def to_blob(self) -> bytes:
        """Encode the whole view, totals first, in the blob version of its kind."""

    def forget(self) -> Sequence[_EventOut]:
        """End the view on request; afterwards it is like a new view.

        Returns:
            The view's last events, including its end if its kind has `remains`.
        """

    @property
    def next_deadline_ms(self) -> int | None:
        """When to call `apply` even if no digest arrives, Unix ms; None for never."""

    @property
    def is_forgotten(self) -> bool:
        """Whether the view remembers nothing, so that its state can be removed."""

    @property
    def totals(self) -> _TotalsOut:
        """The figures, counted since the first batch of the checkpoint."""


class Outlet(enum.Enum):
    """Destination of an event that leaves a view."""

    INCIDENTS = "incidents"
    """The incidents beside the checkpoint, and the history."""
    MINUTES = "minutes"
    """The history, if it is configured."""
    DETAILS = "details"
    """Definite acknowledgements; without ``--report-detail``, the job drops them."""
    DEAD_LETTERS = "dead letters"
    """The dead-letter topic, if it is configured."""
    FORGOTTEN = "forgotten"
    """The sums over forgotten views."""


@dataclass(frozen=True, slots=True)
class Grouping(Generic[Totals, Part]):
    """How the totals of views become the published totals of groups.

    The needs of the state decide how views divide the traffic. A group is what an
    operator knows by name. A group may have parts in any number of views.

    Attributes:
        totals: Type of the totals of a group; `Kind.figures` is their table. They
            satisfy `sds_core.observer.view_totals.ViewTotals`.
        split: Returns the totals of each group in a view's totals, by the group's name.
        join: Returns the totals of a group from its parts in all views. The parts, at
            least one, are in any order. Counts are added, and the verdict is judged
            again.
        name_of: Returns the name of the group of an event that leaves a view. Incidents
            are `sds_core.observer.incidents.GroupIncident`. Minutes are a subclass of
            `sds_core.observer.minutes.GroupMinute`. All views emit their figures of a
            minute in the same batch.
        changed: Returns a view's totals with only the groups that its last `apply` may
            have changed. `changed` keeps the cost of a batch proportional to its
            changes. If None, each batch has the totals of all groups of the views.
        leftovers: Names of the groups that collect traffic of unknown groups; lists
            show them last.
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
    """Everything that the job knows about the views of one kind.

    Attributes:
        prefix: First part of the views' keys. Checkpoints contain the prefix, so never
            change it.
        digest: Type of the digest of one chunk of records for one view.
        blob_version: Version of the blobs that this release writes. Each kind counts
            its own versions.
        checksum_since: First blob version with a checksum.
        label_file: Name of the file, beside the checkpoint, that lists the views with
            their own metric label; empty if no view has a label.
        label_budget: Maximum number of views with a metric label; None:
            ``--label-budget`` of the job applies.
        in_channel_table: Whether the operator's channel table applies to the views.
        outlets: The `Outlet` of each type of event.
        is_known: Whether totals belong to a known object, such as a channel. Views
            without known totals are not published.
        figures: The table of the views' figures; None if single views are not
            published. A protocol's kind must have a table.
        remains: Returns those counts of a forgotten view that stay in sums over all
            views. None if views are never forgotten, or if no sum over the views is
            published.
        grouping: How views are joined into groups. If set, labels, figures and
            incidents belong to groups, not to views. Grouped views are never forgotten.
            None if single views are published.
        explain: Returns one sentence that gives the reason for an incident.
        runbooks: Kind of an incident -> name of its runbook.
        causes: Returns the likely causes of a bad verdict from the totals of a view or
            group; empty if no cause is very likely.
        personal: Kinds of incidents that affect single participants and name them.
        at_root: Whether pages and API have the views at their root, such as `/` and
            `/api/v1/incidents`, instead of under `/views/<prefix>`. If `at_root` is
            set, the views are at the report's top level, and are the default for
            commands. At most one kind is at the root.
        has_objectives: Whether the SLOs of the channel table apply to the views.
        is_audited: Whether an audit of the mirror compares the views' messages.
        excused: Returns the findings in a verdict's window, keyed by kind. A kind is
            omitted if all its findings count.

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
        """The names in the table `published`. The table must exist."""
        return self.published.names

    @property
    def events_type(self) -> Any:
        """The type of all events that leave the view in one batch, for msgspec."""
        if not self.outlets:
            return list[None]
        return list[reduce(or_, self.outlets)]  # type: ignore[misc]

    @property
    def minute(self) -> type | None:
        """The type of the minutes that the views emit; None if the views emit none."""
        found = (one for one, to in self.outlets.items() if to is Outlet.MINUTES)
        return next(found, None)

    @property
    def has_findings(self) -> bool:
        """Whether incidents or minutes leave the views."""
        return not {Outlet.INCIDENTS, Outlet.MINUTES}.isdisjoint(self.outlets.values())


AnyKind = Kind[Any, Any, Any]


class Digester(Protocol[_FrameIn, _DigestOut]):
    """Builds one view's digest of the frames in one chunk of records."""

    def add(self, frame: _FrameIn, value: bytes, arrival: Arrival) -> None:
        """Add a frame, its encoded bytes, and how its record arrived."""

    def finish(self) -> _DigestOut:
        """Return the digest of all frames that were added, in a form for msgspec."""


class FrameReader(Protocol):
    """Adds frames to their digests; where possible, without decoding them."""

    def add(self, key: bytes | None, value: bytes, arrival: Arrival) -> int:
        """Add the frame of a record to the digest of its view.

        Returns:
            Approximate number of bytes that the digest keeps in memory. If the
            digest was not changed, the number is 0; the frame may still be valid.
        """


@dataclass(frozen=True, slots=True)
class TrafficProtocol(Generic[Frame]):
    """A protocol whose traffic the monitor observes.

    Attributes:
        name: Value of the record header ``protocol``; see `record.DEFAULT_PROTOCOL`
            for records without it.
        decode: Returns the frame of a record, from value and headers. If the record
            does not hold a frame, raises a subclass of `sds_core.wire.UndecodableFrame`
            with the dead-letter reason. If the record lacks a header that the protocol
            needs, raises `record.BadHeader`.
        fits_key: Whether a record with this key may contain this frame.
        view_name: Returns the name of the view to which a frame belongs.
        new_digester: Makes the digester of one view, given the Kafka partition.
        new_reader: Makes the reader of one chunk. The arguments are the Kafka
            partition, and the digesters by view name. The reader adds new digesters to
            the second argument. None if all frames are decoded.
        split: Returns pairs: the name of a view that a frame concerns, and the part of
            the frame for the view's digester. None if the whole frame belongs to
            `view_name`.
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
    """Return the protocols for Spark's workers; see `Kinds.without_figures`."""
    return [replace(one, kind=replace(one.kind, figures=None)) for one in protocols]


class UnknownKind(ValueError):
    """A checkpoint holds views of a kind that is not registered."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        super().__init__(
            f"the checkpoint has views of kind {prefix!r:.80}, which this release "
            "does not know: run the release that wrote it, or a newer one"
        )


class Kinds:
    """The kinds of view of one job, by the distinct first parts of their keys."""

    def __init__(self, kinds: Iterable[AnyKind]) -> None:
        self._by_prefix = {kind.prefix: kind for kind in kinds}

    def __iter__(self) -> Iterator[AnyKind]:
        """Iterate over the kinds in the order of registration."""
        return iter(self._by_prefix.values())

    def without_figures(self) -> Kinds:
        """Return the kinds without tables of figures, for Spark's Python workers.

        Workers unpickle the kinds for every task, and never read a figure.
        """
        return Kinds([replace(kind, figures=None) for kind in self])

    def of(self, prefix: str) -> AnyKind:
        """Return the kind that has this prefix.

        Raises:
            UnknownKind: There is none.
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
