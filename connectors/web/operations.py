"""Routes of the API, and the parts of their descriptions.

The function that answers a request is the only source of the description. The
function's parameters are the request and its query parameters. The return type
describes the answer. The docstring describes the operation.
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
"""Name of the parameter `id` in paths without a prefix, except `/api/v1/channels`."""


@dataclass(frozen=True, kw_only=True)
class NoQuery:
    """No query parameters."""


class Operation(Route):
    """A route with its description.

    Attributes:
        text: Description of the answer; by default the docstring of the endpoint.
        form: Dataclass of the query parameters.
        label: Name that `id` has as a query parameter and in the answer.
        answers: Types that the answer's body can have.
        refusals: Errors of this operation, in addition to the errors of all operations.
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

    Starlette runs `call` in its thread pool, so `call` may read files and all views.
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

    `name` is the last part of the operations' paths. If the type of the answer depends
    on the kind of view, `answer_of` returns the type for a kind.
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
