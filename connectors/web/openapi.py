"""Creates the description of the API in OpenAPI 3.1 from the routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypedDict

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from connectors.web.answers import HEADERS
from connectors.web.operations import JSON, KINDS, NoQuery, Operation
from connectors.web.parameters import Parameter, parameters_of, read_query
from sds_core.times import TIMES, utc_name

Schema = dict[str, Any]

PATH = "/api/v1/openapi.json"

ERRORS: Mapping[str, str] = {
    "400": "A query parameter does not exist or has a wrong value.",
    "401": "The request needs a login.",
    "421": "The server does not accept this host name.",
    "429": "The client's IP address sends too many requests.",
    "500": "The server could not answer because of an internal error.",
    "503": "The monitor is starting, or it is answering too many other requests.",
}
"""HTTP status -> meaning of the error. Every operation that may need a login can return
these errors, but only operations that answer with JSON return 400."""

_UNKNOWN = "No kind of view has this prefix."

_SECURITY: Sequence[Schema] = ({}, {"basic": []}, {"bearer": []}, {"certificate": []})
"""One of these schemes applies; the operator decides which (docs/web-access.md)."""

_SCHEMES: Schema = {
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "A user name and password from `basic_auth_users` in the file "
        "of `--web-config`.",
    },
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token whose hash is in `bearer_tokens` in the file of "
        "`--web-config`.",
    },
    "certificate": {
        "type": "mutualTLS",
        "description": "A client certificate, if `tls_server_config` requires one.",
    },
}

_PATH_PARAMETERS: Mapping[str, Schema] = {
    "prefix": {
        "description": "Kind of view.",
        "schema": {"type": "string", "enum": [kind.prefix for kind in KINDS]},
    },
    "id": {
        "description": "Id of the channel or group, percent-encoded.",
        "schema": {"type": "string"},
    },
}


def _summary_of(text: str) -> str:
    # The first paragraph of a docstring, in one line.
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _renamed(schema: Schema, schemas: Mapping[str, Schema], label: str) -> Schema:
    # In the answer, the field `id` is renamed to `label`.
    _, _, name = schema["$ref"].rpartition("/")
    described = schemas[name]
    return described | {
        "properties": {
            label if key == "id" else key: value
            for key, value in described["properties"].items()
        },
        "required": [label if key == "id" else key for key in described["required"]],
    }


def _explained(schema: Schema) -> Schema:
    # The description of each key is in the docstring of the type. For each key with a
    # time, `sds_core.times.with_utc` adds a key with the time as text to the answer.
    text = schema.get("description", "")
    described = schema | ({"description": _summary_of(text)} if text else {})
    if "properties" not in schema:
        return described
    helps = _attributes_in(text)
    properties: Schema = {}
    for name, value in schema["properties"].items():
        help_ = {"description": helps[name]} if name in helps else {}
        properties[name] = help_ | value
        if name in TIMES:
            properties[utc_name(name)] = _as_text(value)
    required = [
        one
        for name in schema["required"]
        for one in ([name, utc_name(name)] if name in TIMES else [name])
    ]
    return described | {"properties": properties, "required": required}


def _as_text(schema: Any) -> Any:
    # From the schema of a time as a number, return the schema of the time as RFC 3339.
    if isinstance(schema, list):
        return [_as_text(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "integer":
        return {"type": ["string", "null"], "format": "date-time"}
    return {
        key: _as_text(value) for key, value in schema.items() if key != "description"
    }


def _attributes_in(docstring: str) -> dict[str, str]:
    _, _, listed = inspect.cleandoc(docstring).partition("Attributes:\n")
    entries = re.findall(r"^    (\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", listed, re.M)
    return {
        name: " ".join(text.split())
        for names, text in entries
        for name in names.split(", ")
    }


class ErrorObject(TypedDict):
    """An error.

    Attributes:
        error: Why the monitor cannot answer the request, in one line.
    """

    error: str


def description(routes: Iterable[BaseRoute]) -> Operation:
    """Return the operation whose answer describes all operations in `routes`."""
    described = [one for one in routes if isinstance(one, Operation)]

    # The body is created when it is first requested: most processes never need it.
    @cache
    def body() -> bytes:
        return msgspec.json.encode(document(described))

    def endpoint(request: Request) -> Response:
        """Return this description of the API."""
        read_query(NoQuery, request.query_params)
        return Response(body(), headers=HEADERS, media_type=JSON)

    own = Operation(PATH, endpoint, answers=[dict[str, Any]], media_type=JSON)
    described.append(own)
    return own


def document(operations: Sequence[Operation]) -> Schema:
    """Return the OpenAPI document that describes the operations."""
    types: list[Any] = [ErrorObject]
    for one in operations:
        types += one.answers
        types += (parameter.type for parameter in _parameters(one))
    found, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    schemas = {name: _explained(one) for name, one in components.items()}
    error, *rest = found
    left = iter(rest)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sds-monitor",
            "version": "v1",
            "description": "docs/http-api.md defines which parts of the API are "
            "stable.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "security": _SECURITY,
        "paths": {
            one.path_format: {"get": _operation(one, left, schemas, error)}
            for one in operations
        },
        "components": {"schemas": schemas, "securitySchemes": _SCHEMES},
    }


def _parameters(operation: Operation) -> Sequence[Parameter]:
    return parameters_of(operation.form, operation.label)


def _operation(
    operation: Operation,
    found: Iterator[Schema],
    schemas: Mapping[str, Schema],
    error: Schema,
) -> Schema:
    # `found` yields the schemas of the operation's answers, then the schemas of its
    # parameters.
    summary, _, more = operation.text.partition("\n\n")
    answers = [next(found) for _ in operation.answers]
    if operation.label != "id":
        answers = [_renamed(one, schemas, operation.label) for one in answers]
    is_json = operation.media_type == JSON
    body = answers[0] if len(answers) == 1 else {"anyOf": answers}
    parameters = [
        {"name": name, "in": "path", "required": True, **_PATH_PARAMETERS[name]}
        for name in operation.param_convertors
    ]
    helps: dict[str, str] = {}
    for base in reversed(operation.form.__mro__):
        helps |= _attributes_in(base.__doc__ or "")
    for one in _parameters(operation):
        schema = next(found)
        if isinstance(one.default, str | int):
            schema = {**schema, "default": one.default}
        parameters.append(
            {
                "name": one.name,
                "in": "query",
                "required": one.is_required,
                "description": helps[one.field],
                "schema": schema,
            }
        )
    described: Schema = {
        "operationId": re.sub(r"\W+", "_", operation.path_format).strip("_"),
        "summary": " ".join(summary.split()),
        "description": " ".join(more.split()),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {operation.media_type: {"schema": body}},
            }
        },
    }
    if operation.is_open:
        return described | {"security": []}
    errors = {"application/json": {"schema": error}}
    if not is_json:
        errors = {"text/plain": {"schema": {"type": "string"}}}
    for status, text in sorted(_errors(operation).items()):
        described["responses"][status] = {"description": text, "content": errors}
    return described


def _errors(operation: Operation) -> dict[str, str]:
    found = dict(ERRORS)
    if operation.media_type != JSON:
        del found["400"]
    if "prefix" in operation.param_convertors:
        found["404"] = _UNKNOWN
    for refusal in operation.refusals:
        status, text = str(refusal.status), _summary_of(refusal.__doc__ or "")
        found[status] = " ".join(filter(None, (found.get(status), text)))
    return found
