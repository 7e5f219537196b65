"""Writes docs/http-api.md from the API's description: ``python -m docs.make_api``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette

from connectors.web.app import create_app
from connectors.web.openapi import ERRORS, PATH, document
from connectors.web.operations import Operation
from connectors.web.paging import PAGE_LIMIT
from connectors.web.side_apps import create_audit_app
from connectors.web.sources import Sources
from docs.page_part import table
from sds_core.audit.figures import AuditFigures
from sds_core.observer.snapshot import Snapshot
from sds_core.times import SUFFIX

PAGE = Path(__file__).with_name("http-api.md")

_HEAD = """\
# HTTP API

What does each address of the API return, and which parts of the API are stable?

`.venv/bin/python -m docs.make_api` writes this page; do not edit it by hand.
The monitor serves this description in the format OpenAPI 3.1 at `{path}`.

## Stability

These rules apply from version 0.18.0 until a version stops serving addresses below `/api/v1`:

- **Stable**: addresses, parameters and their defaults, keys of answers, the type and meaning of each key, and the HTTP status of errors.
- **May be added at any time**: addresses, optional parameters, keys of answers, and words that a key can have as its value, for example verdicts, reasons, kinds of incidents, and kinds of causes.
  A client should ignore keys and words that it does not know.
- **May change at any time**: sentences (values of `summary`, `sentence`, `why`, `text` and `error`), the order of keys, the content of `next`, and the [status page](status-page.md).
  If the definition of a [figure](figures.md) changes, the changelog names the figure.
- **Deprecated** addresses, parameters and keys are marked on this page, in the OpenAPI description and in the changelog.
  Deprecated parts of the API work [for a limited time](compatibility.md#deprecation).
- If a change of an address is incompatible, the new form of the address is added below `/api/v2`. The old address below `/api/v1` becomes deprecated.

The same rules hold for `/metrics`, `/healthz` and `/readyz`; [metrics.md](metrics.md) lists the metrics.

## For all addresses

- Requests are GET or HEAD. Answers are JSON objects. The header `Cache-Control: no-store` prevents caches from storing an answer.
- If the operator requires a [login](web-access.md), requests to the API need this login.
- A view is a channel or a group. At addresses below `/api/v1/views/{{prefix}}`, the prefix selects the kind of view: `sds` for channels, `mvds` for groups. At these addresses, the parameter `channel` is named `id`.
- Until the job has read the figures in its checkpoint, `/readyz` and all addresses of the API except `/api/v1/channels` and `{path}` answer with status 503. While the job is stopping, the API returns the last figures.

Several addresses have these parameters:

{parameters}

If an address returns JSON, the body of an error is `{{"error": "…"}}`; otherwise, the body is plain text.
These errors can occur at several addresses:

{errors}

### Pages

A list in an answer has at most {limit:,} entries, or `limit` entries if `limit` is smaller.
To get more entries, request the same address again with `after` set to the answer's `next`, until `next` is null:

```sh
curl 'http://127.0.0.1:9108/api/v1/channels?limit=500'
curl 'http://127.0.0.1:9108/api/v1/channels?limit=500&after=…'
```

An entry that keeps its place in the list is returned exactly once.
If a channel's verdict or muting changes between two requests, the channel may be returned twice or not at all.
If the value of an incident's key `found` changes between two requests, the incident may be returned twice or not at all.
A value of `next` is valid as long as the monitor knows the channel, group or tap of the page's last entry. Do not interpret this value.

Lists of intervals, of participants, and of a trace's steps are not split into pages, because their length is bounded.
"""  # noqa: E501 - one sentence per line


def page() -> str:
    """Return the whole page."""
    sources = Sources(Snapshot, dict, Path())
    monitor = _described(create_app(sources, CollectorRegistry()))
    audit = _described(create_audit_app(AuditFigures()))
    own = {path: item for path, item in audit["paths"].items() if "audit" in path}
    usual = _Usual.of(monitor["paths"])
    errors = [
        (status, sentence)
        for status in sorted(ERRORS.keys() | usual.errors.keys())
        for sentence in filter(None, (ERRORS.get(status), *usual.errors[status]))
    ]
    schemas = monitor["components"]["schemas"] | audit["components"]["schemas"]
    lines = [
        _HEAD.format(
            path=PATH,
            parameters="\n".join(table(_PARAMETER_HEADS, usual.parameters)),
            errors="\n".join(table(("status", "meaning"), errors)),
            limit=PAGE_LIMIT,
        ),
        "## Addresses\n",
        *_addresses(monitor["paths"], usual),
        "## Addresses of an audit\n",
        "A repeated [audit](audit.md#again-and-again) serves its newest result on its "
        "own port, which also serves `/metrics`, `/healthz` and `/readyz`.\n",
        *_addresses(own, usual),
        "## Objects\n",
        "For each key that holds a time, a second key with the suffix "
        f"`{SUFFIX}` holds the same time [as text](web-server.md#times-in-json).\n"
        f"{_ABOUT_FIGURES}",
        *_objects(schemas),
    ]
    return "\n".join(lines)


_USUAL = 3
"""Number of addresses from which a parameter or an error is described once for all."""

_PARAMETER_HEADS = ("parameter", "values", "meaning")

Row = tuple[str, ...]
"""Cells of a row of a table."""


class _Usual(NamedTuple):
    """What several addresses have.

    Attributes:
        parameters: Rows of the parameters.
        errors: Sentences beside the general one, by status.
    """

    parameters: list[Row]
    errors: Mapping[str, list[str]]

    @classmethod
    def of(cls, paths: Mapping[str, Any]) -> _Usual:
        """Return what those addresses have in common."""
        operations = [together[0] for together in _grouped(paths).values()]
        rows = Counter(row for one in operations for row in _parameters(one))
        sentences = Counter(pair for one in operations for pair in _errors(one))
        errors = defaultdict(list)
        for (status, sentence), count in sentences.items():
            if count >= _USUAL:
                errors[status].append(sentence)
        return cls([row for row, count in rows.items() if count >= _USUAL], errors)


def _described(app: Starlette) -> dict[str, Any]:
    return document([one for one in app.routes if isinstance(one, Operation)])


def _grouped(paths: Mapping[str, Any]) -> dict[Row, list[Any]]:
    """Return operations by their paths; one with two paths has one group."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for path, item in paths.items():
        key = item["get"]["summary"], item["get"]["description"]
        groups.setdefault(key, {})[path] = item["get"]
    return {tuple(one): list(one.values()) for one in groups.values()}


def _parameters(operation: Mapping[str, Any]) -> Iterator[Row]:
    for one in operation["parameters"]:
        yield f"`{one['name']}`", _values(one), _meaning(one)


def _errors(operation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each sentence about an error, without the general one of its status."""
    for status, response in operation["responses"].items():
        if status != "200":
            own = response["description"].removeprefix(ERRORS.get(status, ""))
            for sentence in filter(None, own.strip().split(". ")):
                yield status, f"{sentence.removesuffix('.')}."


def _addresses(paths: Mapping[str, Any], usual: _Usual) -> Iterator[str]:
    """Yield a section for each operation."""
    for names, operations in _grouped(paths).items():
        first = operations[0]
        yield f"### {', '.join(f'`{path}`' for path in names)}\n"
        yield f"{' '.join(filter(None, (first['summary'], first['description'])))}\n"
        rows = list(_parameters(first))
        if own := [row for row in rows if row not in usual.parameters]:
            yield from table(_PARAMETER_HEADS, own)
            yield ""
        answers = dict.fromkeys(
            kind
            for one in operations
            for media, body in one["responses"]["200"]["content"].items()
            for kind in _kinds(media, body["schema"])
        )
        if shared := [row[0] for row in rows if row in usual.parameters]:
            yield f"{'Other parameters' if own else 'Parameters'}: {', '.join(shared)}."
        yield f"Answer: {', '.join(answers)}."
        for status, sentence in _errors(first):
            if sentence not in usual.errors[status]:
                yield f"Error {status}: {sentence}"
        yield ""


def _has_section(schema: Mapping[str, Any]) -> bool:
    """Whether a type stands by itself, and is no mere part of one other."""
    return "description" in schema or "enum" in schema


_FIGURES = ("Channel", "Group")
"""Objects that have all figures of a report."""

_REPORTED = "[Figures](figures.md)."

_ABOUT_FIGURES = """\
In the objects Channel and Group, the key of a figure is its key in the [report](figures.md). In other objects, `_` replaces each `.` of this key.
In the object ChannelHours, a figure that consists of durations has two keys: the key with the suffix `_count` holds the number of durations, and the key with the suffix `_sum` holds their sum in milliseconds.

Several objects have these keys:
"""  # noqa: E501 - one sentence per line


def _objects(schemas: Mapping[str, Any]) -> Iterator[str]:
    """Yield a section for each type; those that are mere parts of one stand in it."""
    tables = {
        name: list(_keys(schema, schemas))
        for name, schema in sorted(schemas.items())
        if _has_section(schema) and "enum" not in schema
    }
    figures = {
        row[2]
        for name in _FIGURES
        for row in tables[name]
        if row[1] in ("integer", _link("Durations"))
        # What is deprecated stays marked.
        and not row[2].startswith("**")
    }
    uses = Counter(row for rows in tables.values() for row in rows if row[2])
    usual = {
        row: None
        for row, count in uses.items()
        if count >= _USUAL and row[2] not in figures
    }
    yield from _listed_keys(usual)
    yield ""
    for name, schema in sorted(schemas.items()):
        if not _has_section(schema):
            continue
        yield f"### {name}\n"
        if text := schema.get("description"):
            yield f"{text}\n"
        if "enum" in schema:
            yield f"One of {_listed(schema['enum'])}.\n"
            continue
        rows, like = tables[name], _like(name, tables)
        if like is not None:
            lacking = [row[0] for row in tables[like] if row not in rows]
            but = f" except {', '.join(lacking)}" if lacking else ""
            rows = [row for row in rows if row not in tables[like]]
            yield f"All keys of {_link(like)}{but}.{' Further keys:' if rows else ''}\n"
        own = [row for row in rows if row not in usual]
        yield from _listed_keys(_abridged(own, figures))
        if shared := [row[0] for row in rows if row in usual]:
            yield f"- {', '.join(shared)}"
        yield ""


def _listed_keys(rows: Iterable[Row]) -> Iterator[str]:
    """Yield an entry of a list for each key, or keys, of an object."""
    for name, kind, meaning in rows:
        yield f"- {name} ({kind}){f': {meaning}' * bool(meaning)}"


_ALIKE = 3
"""Keys that an object has of another one, if it is described by that one."""


def _like(name: str, tables: Mapping[str, list[Row]]) -> str | None:
    """Return an object of which another one has all keys, or all but one."""
    rows = tables[name]
    for other, others in tables.items():
        shared = sum(row in rows for row in others)
        apart = len(others) - shared
        # If each lacks one key of the other, the second refers to the first.
        most = other < name and shared < len(rows)
        if other != name and shared >= _ALIKE and apart <= most:
            return other
    return None


def _abridged(rows: Iterable[Row], figures: Set[str]) -> Iterator[Row]:
    """Join neighbouring rows that mean the same, and all figures of a report."""

    def is_reported(row: Row) -> bool:
        # Columns of durations say in addition what they hold of them.
        return row[2] in figures or f"{row[2].rpartition(': ')[0]}." in figures

    def explained(row: Row) -> Row:
        return row[1], _REPORTED if is_reported(row) else row[2]

    def is_figure(row: Row) -> tuple[bool, str]:
        return (True, row[1]) if is_reported(row) else (False, "")

    for cells, group in groupby(sorted(rows, key=is_figure), explained):
        yield ", ".join(row[0] for row in group), *cells


def _keys(
    schema: Mapping[str, Any], schemas: Mapping[str, Any], before: str = ""
) -> Iterator[Row]:
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
            yield f"`{before}{key}`", _kind(value), _meaning(value)


def _meaning(described: Mapping[str, Any]) -> str:
    """Return what a parameter or a key means."""
    deprecated = described.get("schema", described).get("deprecated", False)
    return f"{'**Deprecated.** ' * deprecated}{described.get('description', '')}"


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
