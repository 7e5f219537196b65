"""JSON schemas as msgspec makes them, with what the docstrings of the types say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from sds_core.times import TIMES, utc_name

Schema = dict[str, Any]


def summary_of(text: str) -> str:
    """Return the first paragraph of a docstring, in one line."""
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def renamed(schema: Schema, schemas: Mapping[str, Schema], label: str) -> Schema:
    """Return the schema of an answer whose `id` has another name."""
    _, _, name = schema["$ref"].rpartition("/")
    described = schemas[name]
    return described | {
        "properties": {
            label if key == "id" else key: value
            for key, value in described["properties"].items()
        },
        "required": [label if key == "id" else key for key in described["required"]],
    }


def explained(schema: Schema) -> Schema:
    """Return the schema of a type with what its docstring says of each key.

    Beside each time stands its text, see `sds_core.times.with_utc`.
    """
    text = schema.get("description", "")
    described = schema | ({"description": summary_of(text)} if text else {})
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
    """Return the schema of times as RFC 3339 where another one has numbers."""
    if isinstance(schema, list):
        return [_as_text(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "integer":
        return {"type": ["string", "null"], "format": "date-time"}
    return {
        key: _as_text(value) for key, value in schema.items() if key != "description"
    }


def attributes_of(form: type) -> dict[str, str]:
    """Return what the docstrings of a class and its bases say of each attribute."""
    found: dict[str, str] = {}
    for base in reversed(form.__mro__):
        found |= _attributes_in(base.__doc__ or "")
    return found


def _attributes_in(docstring: str) -> dict[str, str]:
    """Return what a docstring says of each attribute."""
    _, _, listed = inspect.cleandoc(docstring).partition("Attributes:\n")
    entries = re.findall(r"^    (\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", listed, re.M)
    return {
        name: " ".join(text.split())
        for names, text in entries
        for name in names.split(", ")
    }
