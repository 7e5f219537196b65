"""Query parameters of pages and API, as fields of dataclasses.

The type of a field defines the allowed values, which the API's description shows. A
value that is not allowed raises `WrongParameter`; a parameter with an unknown name
raises `UnknownParameter`. A view that does not exist raises `NoChannel`.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from urllib.parse import urlencode

import msgspec
from msgspec import Meta
from starlette.exceptions import HTTPException
from starlette.requests import Request

from connectors.web.naming import needs_key, short_key
from connectors.web.refusals import NoChannel, UnknownParameter, WrongParameter
from connectors.web.trends import DEFAULT_HOURS, Hours
from sds_core.observer.incidents import IncidentKind, IncidentQuery
from sds_core.observer.snapshot import Snapshot, Views

_GREATEST = 10**18 - 1
"""Maximum of an integer parameter. It has 18 digits, so 64 bits can hold it."""

Whole = Annotated[int, Meta(ge=0, le=_GREATEST)]


@dataclass(frozen=True, kw_only=True)
class ViewQuery:
    """Selects a view.

    Attributes:
        id: Id of the channel or group.
        key: Key of the channel or group, 16 hexadecimal digits. A channel or group has
            a key only if its id is too long for an address or contains hidden
            characters.
    """

    id: str | None = None
    key: str | None = None

    def find(self, names: Iterable[str]) -> str | None:
        """Return `id`, or the name whose key is `key`; None if both are None.

        Raises:
            NoChannel: None of `names` has the key.
        """
        if self.id is not None or self.key is None:
            return self.id
        for name in names:
            if needs_key(name) and short_key(name) == self.key:
                return name
        raise NoChannel("key", self.key)

    def chosen(self, names: Collection[str]) -> str | None:
        """Return the name of the selected view; None if no view is selected.

        Raises:
            NoChannel: `names` does not contain the selected view.
        """
        return None if self.find(names) is None else self.existing(names)

    def existing(self, names: Collection[str]) -> str:
        """Return the name of the selected view.

        Raises:
            NoChannel: No view is selected, or `names` does not contain its name.
        """
        name = self.find(names) or ""
        if name not in names:
            raise NoChannel("id", name)
        return name


@dataclass(frozen=True, kw_only=True)
class IncidentSelection(ViewQuery):
    """Selects incidents.

    Attributes:
        kind: Return only incidents of this kind.
        since: Return only incidents that have not ended, or that were found at this
            event time (Unix ms) or later.
        standing: Whether to return only incidents that have not ended.
    """

    kind: IncidentKind | None = None
    since: Whole | None = None
    standing: bool = False

    def query(self, names: Iterable[str]) -> IncidentQuery:
        """Return the conditions as a query; `names` has the names of all views."""
        return IncidentQuery(
            channel=self.find(names),
            kind=self.kind,
            since_ms=self.since,
            standing=self.standing,
        )


@dataclass(frozen=True, kw_only=True)
class HoursQuery(ViewQuery):
    """Selects a view and a period.

    Attributes:
        hours: Number of past hours that the answer covers.
    """

    hours: Hours = DEFAULT_HOURS


@dataclass(frozen=True, kw_only=True)
class TraceQuery(ViewQuery):
    """Selects a message.

    Attributes:
        message: Id of the message, or the Waku hash of one of its copies.
        since: Approximate time at which the message appeared, Unix ms; by default, the
            search covers the last 24 hours.
    """

    message: Annotated[str, Meta(min_length=1)]
    since: Whole | None = None


class Parameter(NamedTuple):
    """A query parameter.

    Attributes:
        name: Name of the parameter in an address.
        field: Name of the dataclass's field that holds the parameter's value.
        default: Value if the parameter is omitted; `dataclasses.MISSING` if it is
            required.
    """

    name: str
    field: str
    type: Any
    default: Any

    @property
    def is_required(self) -> bool:
        """Whether the parameter is required."""
        return self.default is MISSING

    def read(self, text: str) -> Any:
        """Convert the parameter's text in an address to the parameter's type."""
        try:
            return msgspec.convert(text, self.type, strict=False)
        except msgspec.ValidationError as error:
            raise WrongParameter(self.name, _allowed(self.type), text) from error


Query = TypeVar("Query")


@cache
def parameters_of(form: type, label: str = "id") -> Sequence[Parameter]:
    """Return the parameters that the fields of a dataclass describe.

    The parameter for the field `id` has the name `label`. Each other parameter has the
    name in the metadata of its field or, by default, the name of its field.
    """
    types = get_type_hints(form, include_extras=True)
    return [
        Parameter(
            label if one.name == "id" else one.metadata.get("name", one.name),
            one.name,
            _given(types[one.name]),
            None if one.default_factory is not MISSING else one.default,
        )
        for one in fields(form)
    ]


def read_query(
    form: type[Query],
    given: Mapping[str, str],
    label: str = "id",
    *,
    strict: bool = True,
) -> Query:
    """Return the parameters of a request as an object of the dataclass `form`.

    If `strict`, a parameter that `form` does not have raises `UnknownParameter`.
    """
    known = {one.name: one for one in parameters_of(cast(type, form), label)}
    for name in given:
        if strict and name not in known:
            raise UnknownParameter(name, list(known))
    for one in known.values():
        if one.is_required and one.name not in given:
            raise WrongParameter(one.name, _allowed(one.type), "")
    return form(
        **{
            one.field: one.read(given[name])
            for name, one in known.items()
            if name in given
        }
    )


def query_of(form: type, given: Mapping[str, str], label: str) -> str:
    """Encode parameters for an address; omit those that the dataclass `form` lacks."""
    known = [one.name for one in parameters_of(form, label)]
    chosen = {name: text for name, text in given.items() if name in known}
    return urlencode(chosen, errors="surrogatepass")


def one_of(given: Mapping[str, str], name: str, allowed: Sequence[str]) -> str | None:
    """Return a parameter's text, which must be in `allowed`; None if it is missing."""
    text = given.get(name)
    if text is not None and text not in allowed:
        raise WrongParameter(name, _listed(allowed), text)
    return text


def views_of(request: Request, snapshot: Snapshot) -> Views[Any]:
    """Return the views of the kind whose prefix is in the request's path.

    If the path has no prefix, the kind is the one whose pages are at the root.

    Raises:
        HTTPException: No such kind exists.
    """
    prefix = request.path_params.get("prefix")
    for views in snapshot.views.values():
        if views.kind.at_root if prefix is None else views.kind.prefix == prefix:
            return views
    raise HTTPException(404)


def _given(kind: Any) -> Any:
    # Remove `None` from the type: `None` stands for a missing parameter.
    options = [one for one in get_args(kind) if one is not type(None)]
    return options[0] if type(None) in get_args(kind) else kind


def _allowed(kind: Any) -> str:
    if kind is bool:
        return _listed(["true", "false"])
    if get_origin(kind) is Literal:
        return _listed(get_args(kind))
    if isinstance(kind, enum.EnumType):
        return _listed(list(kind))
    described = msgspec.json.schema(kind)
    if described["type"] != "integer":
        return "a text"
    least, greatest = described["minimum"], described["maximum"]
    limits = (
        f", {least} or more"
        if greatest == _GREATEST
        else f" from {least} to {greatest}"
    )
    return f"a whole number{limits}"


def _listed(values: Sequence[object]) -> str:
    return f"one of {', '.join(map(str, values))}"
