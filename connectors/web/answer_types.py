"""Types of the API's answers; the OpenAPI description is made from these types."""

from __future__ import annotations

from collections.abc import Mapping
from types import GenericAlias
from typing import Annotated, Any, TypedDict, get_type_hints

import msgspec
from msgspec import Meta

from connectors.web.alert_words import HeldObject
from connectors.web.operations import KINDS
from connectors.web.paging import PAGE_LIMIT
from connectors.web.summary import Level
from sds_core.observer.causes import CauseObject
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.figures import Unit
from sds_core.observer.histogram import PERCENTILES
from sds_core.observer.incidents import IncidentObject
from sds_core.observer.kinds import AnyKind
from sds_core.observer.tap_kind import TAP_FIGURES

Clock = Annotated[
    int | None,
    Meta(description="Current event time, Unix ms; null before the first record."),
]
Id = Annotated[str, Meta(description="Id of the channel, group, tap or participant.")]
Name = Annotated[
    str | None,
    Meta(description="Name from the channel table; null if the table has none."),
]
Next = Annotated[
    str | None,
    Meta(
        description="Value for the parameter `after` in the request for the next "
        "page; null on the last page."
    ),
]
Holes = Annotated[
    list[list[int]],
    Meta(
        description="Start and end of each period in which the tap may have missed "
        "records, Unix ms."
    ),
]


class ViewObject(TypedDict):
    """A channel or group with its figures.

    Attributes:
        muted: Whether alerts about the channel or group are muted.
        causes: Likely causes of `verdict`.
        held_back: Alerts about the channel or group that are held back because taps or
            the mirror may have missed messages.
    """

    id: Id
    name: Name
    muted: bool
    causes: list[CauseObject]
    held_back: list[HeldObject]


class JobObject(TypedDict):
    """The job.

    Attributes:
        primed: Whether the job has read the figures in its checkpoint; also true if the
            checkpoint contains no figures.
        running: Whether the job's streaming query runs.
        error: Why the job failed, in one line; empty if it did not fail.
        retrying: Whether the job failed and the monitor will restart it.
        kafka_answered: When Kafka answered last, wall time, Unix ms.
        topic_missing_since: Wall time at which Kafka first reported that the topic is
            missing, Unix ms; null if the topic exists.
        version: Version of the monitor.
        rules: Whether the code of the job's rules is `compiled` or `interpreted`.
        records: Number of Kafka records that the job has read since the first batch of
            the job's checkpoint.
        records_behind: Number of records in the topic that the job has not read yet.
        event_time_lag_seconds: Newest record time in the topic minus the watermark of
            the newest batch; null before the first record.
        batch_duration_ms: Number, sum and percentiles of the durations of the job's
            batches.
        state_bytes: Memory that Spark's state store occupies.
        restarts: Number of times that the job was restarted from its checkpoint.
    """

    primed: bool
    running: bool
    error: str
    retrying: bool
    kafka_answered: int | None
    topic_missing_since: int | None
    version: str
    rules: str
    records: int
    records_behind: int
    event_time_lag_seconds: float | None
    batch_duration_ms: dict[str, int | None]
    state_bytes: int
    restarts: int


class FleetPage(TypedDict):
    """The overall verdict, the job, and a page of channels.

    Attributes:
        ok: True only if the job has fresh figures and no channel or group is failing or
            blind. Muted channels and groups are ignored.
        summary: The overall verdict in one sentence.
        undecodable: Number of dead letters by reason.
        held_back: Alerts about channels. The alerts are held back because taps or the
            mirror may have missed messages.
    """

    ok: bool
    level: Level
    summary: str
    clock: Clock
    job: JobObject
    undecodable: dict[str, int]
    held_back: Annotated[list[HeldObject], Meta(max_length=PAGE_LIMIT)]


class ViewsPage(TypedDict):
    """A page of channels or groups.

    Attributes:
        count: Number of channels or groups on all pages together.
    """

    clock: Clock
    count: int


class ListedIncidentObject(IncidentObject):
    """An incident with the name of its channel."""

    channel_name: Name


# The API's description takes the meaning of keys from this docstring. The type `Name`
# describes the key `channel_name`.
ListedIncidentObject.__doc__ = IncidentObject.__doc__


class IncidentsPage(TypedDict):
    """A page of incidents, newest first.

    Attributes:
        causes: By channel id, the likely causes of the present verdict of each channel
            that `incidents` names.
        observer: Settings of the monitor's model that differ from their defaults.
        more: Whether further pages of incidents exist.
    """

    incidents: list[ListedIncidentObject]
    causes: dict[str, list[CauseObject]]
    observer: dict[str, int | float]
    clock: Clock
    more: bool
    next: Next


class TapObject(TypedDict):
    """A tap.

    Attributes:
        clock_offset_ms: How far the tap's clock is ahead of Kafka's clock, ms; negative
            if the tap's clock is behind; null if unknown.
        channel_count: Number of channels that the tap mirrored in the retention window.
    """

    id: Id
    clock_offset_ms: int | None
    holes: Holes
    channel_count: int


class TapsPage(TypedDict):
    """A page of taps, sorted by id.

    Attributes:
        wrong_clocks: By tap id, the `clock_offset_ms` of each tap whose clock is wrong
            by more than 30 s. A tap is included even if all its records become dead
            letters.
    """

    clock: Clock
    wrong_clocks: dict[str, int]
    next: Next


class ViewMinutes(TypedDict):
    """How much each figure of a view grew in each interval, oldest interval first.

    If the view's figures are unknown at the start of the period, the first interval
    contains the oldest known minute. The last interval is incomplete, because it
    contains the current event time.

    Attributes:
        hours: Number of past hours that the answer covers.
        interval_ms: Length of an interval.
    """

    id: Id
    hours: int
    interval_ms: int


SpanObject = TypedDict(
    "SpanObject",
    {
        "from": Annotated[
            int, Meta(description="Start of the period, wall time, Unix ms.")
        ],
        "to": Annotated[
            int, Meta(description="End of the period (exclusive), wall time, Unix ms.")
        ],
        "verdict": str,
        "reason": Annotated[
            str, Meta(description="Reason of the verdict, as one word.")
        ],
    },
)
SpanObject.__doc__ = "A period in which a view had the same verdict and reason."

VerdictsPage = TypedDict(
    "VerdictsPage",
    {
        "id": Id,
        "from": Annotated[
            int, Meta(description="Start of the period, wall time, Unix ms.")
        ],
        "to": Annotated[
            int, Meta(description="End of the period (exclusive), wall time, Unix ms.")
        ],
        "minutes": Annotated[
            dict[str, int], Meta(description="Number of minutes with each verdict.")
        ],
        "verdicts": list[SpanObject],
        "next": Next,
    },
)
VerdictsPage.__doc__ = "A page of a view's verdicts, oldest first."


def record(name: str, fields: Mapping[str, Any], text: str | None = None) -> type:
    """Create a type from the types of its keys; `text` becomes its docstring."""
    return msgspec.defstruct(
        name, list(fields.items()), namespace={"__doc__": text}, kw_only=True
    )


def list_of(entry: Any) -> Any:
    """Return the type of a list whose entries have a type created at run time."""
    return GenericAlias(list, (entry,))


def extended(name: str, base: Any, fields: Mapping[str, Any]) -> type:
    """Return a type with the keys of a `TypedDict` and further keys."""
    own = get_type_hints(base, include_extras=True)
    return record(name, {**own, **fields}, base.__doc__)


def views_type(kind: AnyKind) -> type:
    """Return the type of the answer at `/api/v1/views/<prefix>`: a page of views."""
    fields = {kind.names.many: list_of(VIEW_TYPES[kind.prefix]), "next": Next}
    return extended(f"{capital(kind.names.many)}Page", ViewsPage, fields)


def fleet_type(kind: AnyKind) -> type:
    """Return the type of the answer at `/api/v1/channels`: the job and its views."""
    fields = {
        f"{kind.names.one}_count": int,
        kind.names.many: list_of(VIEW_TYPES[kind.prefix]),
        "next": Next,
    }
    return extended("FleetPage", FleetPage, fields)


def _view_type(kind: AnyKind) -> type:
    name = capital(kind.names.one)
    return extended(name, ViewObject, _report_types(kind.published, name))


def minutes_type(kind: AnyKind) -> type:
    """Return the type of the answer with the growth of a view's figures."""
    name = capital(kind.names.one)
    grown = {
        figure.growth_key or figure.field: Annotated[
            _GROWN if figure.unit is Unit.DURATIONS else int,
            Meta(description=figure.help),
        ]
        for figure in kind.published.grown
    }
    growth = record(f"{name}Growth", grown, "How much each figure grew in an interval.")
    figures = Annotated[
        growth | None,  # type: ignore[valid-type]
        Meta(
            description="Growth of each figure; null if the values before the interval "
            "are unknown."
        ),
    ]
    begin = Annotated[
        int, Meta(description="Start of the interval, event time, Unix ms.")
    ]
    interval = record(f"{name}Interval", {"begin": begin, "figures": figures})
    fields = {"intervals": list_of(interval)}
    return extended(f"{name}Minutes", ViewMinutes, fields)


def taps_type() -> type:
    """Return the type of a page of taps."""
    tap = extended("Tap", TapObject, _report_types(TAP_FIGURES, "Tap"))
    return extended("TapsPage", TapsPage, {"taps": list_of(tap)})


def _report_types(table: FigureTable[Any], prefix: str) -> dict[str, Any]:
    # Return the type of each key in the report of a table. A part of the report gets a
    # type of its own, whose name begins with `prefix`.
    nested: dict[str, Any] = {}
    for figure in table.figures:
        for path in figure.report:
            *parents, last = path.split(".")
            place = nested
            for parent in parents:
                place = place.setdefault(parent, {})
            kind = _TYPES[figure.unit]
            place[last] = Annotated[kind, Meta(description=figure.help)]
    return _typed(nested, prefix)


def _typed(nested: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {
        key: record(prefix + capital(key), _typed(value, prefix + capital(key)))
        if isinstance(value, dict)
        else value
        for key, value in nested.items()
    }


def capital(key: str) -> str:
    """Return a key as a part of a type's name: `ab_cd` becomes `AbCd`."""
    return key.title().replace("_", "")


_PERCENTILES = {f"p{percent}": int | None for percent in PERCENTILES}
_GROWN = record(
    "GrownDurations",
    {"count": int, **_PERCENTILES},
    "Number of durations, and their percentiles in milliseconds. Each percentile is "
    "the upper bound of the histogram bucket that contains the exact percentile.",
)
_DURATIONS = record(
    "Durations",
    {"count": int, "sum": int, **_PERCENTILES},
    "Number of durations, and their sum and percentiles in milliseconds. Each "
    "percentile is the upper bound of the histogram bucket that contains the exact "
    "percentile.",
)
_TYPES: Mapping[Unit, Any] = {
    Unit.COUNT: int,
    Unit.BYTES: int,
    Unit.TIME: int | None,
    Unit.WORD: str,
    Unit.DURATIONS: _DURATIONS,
}
"""Type of a figure in reports, by the figure's unit. Units of floats are missing,
because reports contain no floats."""

VIEW_TYPES = {kind.prefix: _view_type(kind) for kind in KINDS}
