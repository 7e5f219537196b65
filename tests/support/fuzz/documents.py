"""Reads and writes the documents whose trees `mutation` changes."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import msgspec

from tests.support.fuzz.mutation import Tree


def read_json(value: bytes) -> Tree:
    """Tree of a JSON document; raises ValueError or RecursionError."""
    return json.loads(value)


def write_json(tree: Tree) -> bytes:
    """JSON of a tree; bytes become text."""
    return json.dumps(tree, default=_text, ensure_ascii=False).encode(
        errors="surrogatepass"
    )


def read_toml(value: bytes) -> Tree:
    """Tree of a TOML document; raises ValueError or RecursionError."""
    return tomllib.loads(value.decode())


def write_toml(tree: Tree) -> bytes:
    """TOML of a tree: one line for each key at its top.

    Raises:
        TypeError: The top is not a table.
    """
    if not isinstance(tree, Mapping):
        message = "TOML holds a table at its top"
        raise TypeError(message)
    lines = [f"{_key(name)} = {_toml(value)}\n" for name, value in tree.items()]
    return "".join(lines).encode(errors="replace")


def read_msgpack(value: bytes) -> Tree:
    """Tree of a MessagePack document; raises ValueError."""
    return msgspec.msgpack.decode(value)


def write_msgpack(tree: Tree) -> bytes:
    """MessagePack of a tree; raises OverflowError for numbers beyond 64 bits."""
    return msgspec.msgpack.encode(tree)


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _key(name: object) -> str:
    # TOML's strings know the escapes of JSON's.
    return json.dumps(str(name))


def _toml(value: Tree) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float() if math.isinf(value) or math.isnan(value):
            return "inf" if value > 0 else "nan"
        case int() | float():
            return repr(value)
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            inner = ", ".join(
                f"{_key(key)} = {_toml(one)}" for key, one in value.items()
            )
            return f"{{{inner}}}"
        case list() | tuple():
            return f"[{', '.join(_toml(one) for one in value)}]"
        case None:
            return '""'
        case _:
            return json.dumps(_text(value))
