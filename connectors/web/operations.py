"""Routes of the API, and the parts of their descriptions.

`json_operation` derives a route's description from the function that answers the
requests: from the type of the function's parameter `query`, which has the query
parameters as fields, from its return type, and from its docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from connectors.web.answers import answer
from connectors.web.parameters import ViewQuery, read_query
from connectors.web.refusals import NoChannel, Refusal
from sds_core.observer.kinds import AnyKind
from sds_core.observer.protocols import PROTOCOLS, ROOT_KIND

KINDS: Sequence[AnyKind] = [protocol.kind for protocol in PROTOCOLS]
"""The kinds of view; paths name a kind by its prefix."""

JSON = "application/json"

ROOT_LABEL = ROOT_KIND.names.one
"""Name that replaces `id` in parameters and answers if the path has no prefix of a
kind. `/api/v1/channels` keeps `id`."""


@dataclass(frozen=True, kw_only=True)
class NoQuery:
    """No query parameters."""


class Operation(Route):
    """A route with its description.

    Attributes:
        text: Description of the answer; by default the docstring of the endpoint.
        form: Dataclass of the query parameters.
        label: Name that replaces `id` as a query parameter and as a key of the answer.
        answers: Types that the answer's body can have.
        refusals: Errors that this operation can return, in addition to the errors that
            all operations can return.
        is_open: Whether the operation never needs a login.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[[Request], Any],
        *refusals: type[Refusal],
        text: str | None = None,
        form: type = NoQuery,
        label: str = "id",
        answers: Sequence[Any] = (str,),
        media_type: str = "text/plain",
        is_open: bool = False,
    ) -> None:
        super().__init__(path, endpoint)
        self.text = inspect.cleandoc(text or endpoint.__doc__ or "")
        self.form = form
        self.label = label
        self.answers = answers
        self.media_type = media_type
        self.refusals = refusals
        self.is_open = is_open


def json_operation(
    path: str,
    call: Callable[[Request, Any], Mapping[str, Any]],
    *refusals: type[Refusal],
    label: str = "id",
    answers: Sequence[Any] = (),
) -> Operation:
    """Return an operation whose answer is the result of `call` as JSON.

    Starlette runs `call` in its thread pool. So `call` may take long, for example to
    read files or all views.
    The type of the answer is the return type of `call`, unless `answers` is given. For
    the other arguments, see `Operation`.
    """
    types = get_type_hints(call, include_extras=True)
    form = types["query"]

    def endpoint(request: Request) -> Response:
        made = call(request, read_query(form, request.query_params, label))
        if label != "id":
            made = {label if name == "id" else name: made[name] for name in made}
        return answer(made)

    if issubclass(form, ViewQuery):
        refusals = (*refusals, NoChannel)
    return Operation(
        path,
        endpoint,
        *refusals,
        text=call.__doc__,
        form=form,
        label=label,
        answers=answers or (types["return"],),
        media_type=JSON,
    )


def of_views(
    name: str,
    call: Callable[[Request, Any], Mapping[str, Any]],
    *refusals: type[Refusal],
    answer_of: Callable[[AnyKind], Any] | None = None,
) -> list[Operation]:
    """Return two operations: one for views of the root kind, one for views of any kind.

    `name` is the last part of both paths. If the type of the answer depends on the kind
    of view, `answer_of` returns the type for a given kind.
    """
    of_any = () if answer_of is None else [answer_of(kind) for kind in KINDS]
    at_root = of_any and [of_any[KINDS.index(ROOT_KIND)]]
    return [
        json_operation(
            f"/api/v1/{name}", call, *refusals, label=ROOT_LABEL, answers=at_root
        ),
        json_operation(
            f"/api/v1/views/{{prefix}}/{name}", call, *refusals, answers=of_any
        ),
    ]
