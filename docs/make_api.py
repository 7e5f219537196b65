"""Writes docs/http-api.md from the API's description: ``python -m docs.make_api``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette

from connectors.web.app import create_app
from connectors.web.openapi import ERRORS, PATH, document
from connectors.web.operations import Operation
from connectors.web.paging import PAGE_LIMIT
from connectors.web.side_apps import create_audit_app
from connectors.web.sources import Sources
from sds_core.audit.figures import AuditFigures
from sds_core.observer.snapshot import Snapshot
from sds_core.times import SUFFIX

PAGE = Path(__file__).with_name("http-api.md")

_HEAD = """\
# HTTP API

What does each address of the API answer, with which parameters, and what of it stays the same?

Made from the routes themselves by `.venv/bin/python -m docs.make_api`; do not edit it by hand.
The monitor serves the same description in OpenAPI 3.1 at `{path}`, for tools that generate clients.

## Stability

From 0.18.0 on, as long as an address below `/api/v1` is served:

- **Stable**: addresses, parameters and their defaults, keys of answers with their types and meaning, and the status of errors.
- **May be added at any time**: addresses, parameters that may be omitted, keys of answers, and words, such as a further verdict, reason, kind of incident or kind of cause.
  Ignore keys and words that you do not know.
- **May change at any time**: sentences (`summary`, `sentence`, `why`, `text`, `error`), the order of keys, the content of `next`, and the pages of the [status page](status-page.md).
  [figures.md](figures.md) defines the figures; the changelog names each definition that changes.
- **Deprecated** addresses, parameters and keys are marked here, as `deprecated` in the description, and in the changelog under *Deprecated*.
  They work for at least two further minor versions and six months, and are removed only in a release whose changelog says so first.
- An incompatible change gets addresses of its own below `/api/v2`; those below `/api/v1` are then deprecated.

`/metrics`, `/healthz` and `/readyz` have the same stability; [metrics.md](metrics.md) has the metrics.

## For all addresses

- Requests are GET or HEAD. Answers are JSON objects, which no cache stores; [times](operations.md#times-in-json) stand beside their text.
- If the operator demands it, a request needs a [login](web-access.md): a user with a password, a bearer token, or a client certificate.
- `channel`, and `id` below `/api/v1/views/{{prefix}}`, name a channel or group; `key` replaces an id that is too long for an address.
- A parameter that does not exist, or has a wrong value, is refused with status 400.
- All paths answer before Spark has started and Kafka was found: `/readyz` and the API, except `/api/v1/channels` and `{path}`, give 503. While the job ends, the last figures stay available.

Errors are `{{"error": "…"}}`, of addresses without JSON plain text:

| status | meaning |
|---|---|
{errors}

### Pages

A list that can be long has at most {limit:,} entries, or `limit` if that is less.
If there are more, `next` is a text; request the same address with it as `after` for the entries that follow, until `next` is null.

```sh
curl 'http://127.0.0.1:9108/api/v1/channels?limit=500'
curl 'http://127.0.0.1:9108/api/v1/channels?limit=500&after=…'
```

A page begins after the last entry of the page before, not at a number of entries: an entry that keeps its place comes exactly once, whatever others do.
A channel whose verdict or muting changes between two requests, or an incident that is found again, may come twice or not at all.
A `next` holds as long as the channel of the entry is known; do not interpret it.

Intervals of `minutes`, participants, and steps of a trace are bounded, and come without pages.
"""  # noqa: E501 - one sentence per line


def page() -> str:
    """Return the whole page."""
    sources = Sources(Snapshot, dict, Path())
    monitor = _described(create_app(sources, CollectorRegistry()))
    audit = _described(create_audit_app(AuditFigures()))
    own = {path: item for path, item in audit["paths"].items() if "audit" in path}
    errors = "\n".join(f"| {status} | {text} |" for status, text in ERRORS.items())
    schemas = monitor["components"]["schemas"] | audit["components"]["schemas"]
    lines = [
        _HEAD.format(path=PATH, errors=errors, limit=PAGE_LIMIT),
        "## Addresses\n",
        *_addresses(monitor["paths"]),
        "## Addresses of an audit\n",
        "An [audit](audit.md#again-and-again) serves its newest result, `/metrics` and "
        "the probes, on a port of its own.\n",
        *_addresses(own),
        "## Objects\n",
        "Beside each time stands its text, with the suffix `_utc`.\n",
    ]
    for name, schema in sorted(schemas.items()):
        if _has_section(schema):
            lines += _object(name, schema, schemas)
    return "\n".join(lines)


def _described(app: Starlette) -> dict[str, Any]:
    return document([one for one in app.routes if isinstance(one, Operation)])


def _addresses(paths: Mapping[str, Any]) -> Iterator[str]:
    """Yield a section for each operation; one with two paths has one."""
    groups: dict[tuple[str, str], list[str]] = {}
    for path, item in paths.items():
        operation = item["get"]
        key = operation["summary"], operation["description"]
        groups.setdefault(key, []).append(path)
    for (summary, more), together in groups.items():
        operation = paths[together[0]]["get"]
        yield f"### {', '.join(f'`{path}`' for path in together)}\n"
        yield f"{' '.join(filter(None, (summary, more)))}\n"
        if parameters := operation["parameters"]:
            yield "| parameter | values | meaning |\n|---|---|---|"
            for one in parameters:
                yield _row(one["name"], _values(one), _meaning(one))
            yield ""
        answers = dict.fromkeys(
            kind
            for path in together
            for media, body in paths[path]["get"]["responses"]["200"]["content"].items()
            for kind in _kinds(media, body["schema"])
        )
        yield f"Answer: {', '.join(answers)}.\n"
        errors = {
            status: response["description"]
            for status, response in operation["responses"].items()
            if status != "200" and response["description"] != ERRORS.get(status)
        }
        if errors:
            yield "| error | meaning |\n|---|---|"
            yield from (f"| {status} | {text} |" for status, text in errors.items())
            yield ""


def _has_section(schema: Mapping[str, Any]) -> bool:
    """Whether a type stands by itself, and is no mere part of one other."""
    return "description" in schema or "enum" in schema


def _object(
    name: str, schema: Mapping[str, Any], schemas: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the section of a type; those that are mere parts of it stand in it."""
    yield f"### {name}\n"
    if text := schema.get("description"):
        yield f"{text}\n"
    if "enum" in schema:
        yield f"One of {_listed(schema['enum'])}.\n"
        return
    yield "| key | type | meaning |\n|---|---|---|"
    yield from _keys(schema, schemas)
    yield ""


def _keys(
    schema: Mapping[str, Any], schemas: Mapping[str, Any], before: str = ""
) -> Iterator[str]:
    """Yield a row for each key; `before` is the path to it."""
    for key, value in schema["properties"].items():
        if key.endswith(SUFFIX):
            continue
        items = value.get("items", value)
        part = schemas.get(str(items.get("$ref")).rpartition("/")[2])
        if part is not None and not _has_section(part):
            path = f"{before}{key}[]." if items is not value else f"{before}{key}."
            yield from _keys(part, schemas, path)
        else:
            yield _row(f"{before}{key}", _kind(value), _meaning(value))


def _row(name: str, kind: str, text: str) -> str:
    return f"| `{name}` | {kind} | {text} |"


def _meaning(described: Mapping[str, Any]) -> str:
    """Return what a parameter or a key means."""
    deprecated = described.get("schema", described).get("deprecated", False)
    return "**Deprecated.** " * deprecated + described.get("description", "")


def _values(parameter: Mapping[str, Any]) -> str:
    """Return the values of a parameter in words."""
    schema = parameter["schema"]
    kind = _kind(schema)
    least, greatest = schema.get("minimum"), schema.get("maximum")
    if greatest is not None:
        kind += f" from {least}" + (f" to {greatest}" if greatest < 10**9 else "")
    if "default" in schema:
        kind += f", by default {_plain(schema['default'])}"
    return f"**{kind}**" if parameter["required"] else kind


def _kinds(media: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if media == "text/plain":
        yield "text"
        return
    for one in schema.get("anyOf", [schema]):
        yield _link(one["title"]) if "title" in one else _kind(one)


def _kind(schema: Any) -> str:
    """Return a type in words."""
    match schema:
        case {"$ref": ref}:
            return _link(ref.rpartition("/")[2])
        case {"anyOf": options}:
            return " or ".join(map(_kind, options))
        case {"enum": values}:
            return _listed(values)
        case {"type": "array", "items": items}:
            return f"list of {_kind(items)}"
        case {"type": "object", "additionalProperties": value}:
            return f"object of {_kind(value)}"
        case {"type": str(kind)}:
            return {"string": "text", "boolean": "true or false"}.get(kind, kind)
    return "any"


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _listed(values: list[Any]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
