"""Changes genuine inputs in their structure, as a hostile or broken sender would.

Everything is drawn from a `random.Random`: the same seed gives the same inputs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from sds_core.wire.protobuf_fields import (
    FIXED32,
    FIXED64,
    LENGTH_DELIMITED,
    VARINT,
    BrokenProtobuf,
    protobuf_fields,
)
from tests.support.wire.raw import varint

Tree = Any
"""Nested dicts, lists and plain values, as JSON, TOML and MessagePack hold."""

NUMBERS = (
    0, 1, 2, 3, 5, 7, 8, 63, 64, 65, 127, 128, 255, 256, 1_000, 65_535, 150_000,
    2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1,
)  # fmt: skip
"""Where the limits of formats and of our own checks lie, and beside them."""

TEXTS = (
    "", " ", "a", "alice", "\n", "\x00", "a\tb", "é", "\N{GRINNING FACE}" * 64,
    "\u202e", "x" * 201, "0x" + "0" * 64, "0x", "AA==", "null", "1e999", "-1", "²",
)  # fmt: skip

_SCALARS: tuple[Tree, ...] = (
    None, True, False, -1, *NUMBERS, -(2**63), 0.0, -0.5, 1e-300, 1e300, *TEXTS,
    b"", b"\xff\xfe", b"text",
)  # fmt: skip
_MOST_COPIES = 40
_GROUP_START, _GROUP_END = 3, 4

_Field = tuple[int, int, int | bytes]
"""Field number, wire type and value."""


def few(random: Random) -> int:
    """Return 1 in half the cases, 2 in a quarter, and so on, at most 8."""
    count = 1
    while count < 8 and random.random() < 0.5:
        count += 1
    return count


def changed_bytes(random: Random, value: bytes, other: bytes = b"") -> bytes:
    """Return bytes with some bits, bytes or stretches changed.

    Args:
        random: Chooses.
        value: The bytes.
        other: Bytes of which a stretch may be taken over.
    """
    data = bytearray(value)
    for _ in range(few(random)):
        at = random.randrange(len(data) + 1)
        to = min(len(data), at + random.choice((1, 1, 2, 4, 8, 64)))
        match random.randrange(7):
            case 0 if data:
                data[at % len(data)] ^= 1 << random.randrange(8)
            case 1 if data:
                data[at % len(data)] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                del data[at:to]
            case 3:
                data[at:at] = random.randbytes(random.choice((1, 2, 8)))
            case 4:
                data[at:at] = data[at:to] * random.choice((1, 1, 2, _MOST_COPIES))
            case 5:
                del data[at:]
            case _:
                start = random.randrange(len(other) + 1)
                data[at:to] = other[start : start + random.choice((1, 4, 16, 256))]
    return bytes(data)


def changed_protobuf(random: Random, value: bytes, depth: int = 3) -> bytes:
    """Return a protobuf message with some fields changed, also nested ones.

    Args:
        random: Chooses.
        value: The message; other bytes are changed as bytes.
        depth: Levels of nested messages that may be changed.
    """
    fields = _fields_of(value)
    if not fields:
        return changed_bytes(random, value)
    for _ in range(few(random)):
        _change_field(random, fields, depth)
    written = b"".join(_written(random, *field) for field in fields)
    return changed_bytes(random, written) if random.random() < 0.05 else written


def _fields_of(value: bytes) -> list[_Field]:
    try:
        return [
            (one.number, one.wire_type, one.value) for one in protobuf_fields(value)
        ]
    except BrokenProtobuf:
        return []


def _change_field(random: Random, fields: list[_Field], depth: int) -> None:
    if not fields:
        fields.append((random.randrange(1, 21), VARINT, random.choice(NUMBERS)))
        return
    at = random.randrange(len(fields))
    number, wire_type, value = fields[at]
    match random.randrange(8):
        case 0:
            del fields[at]
        case 1:
            fields[at:at] = [fields[at]] * random.choice((1, 1, 1, _MOST_COPIES))
        case 2:
            to = random.randrange(len(fields))
            fields[at], fields[to] = fields[to], fields[at]
        case 3:
            number = random.choice((*range(1, 21), 2**29 - 1))
            fields[at] = (number, wire_type, value)
        case 4:
            fields[at] = (number, *_other_type(random, value))
        case 5:
            group, to = random.randrange(1, 21), random.randrange(at, len(fields) + 1)
            fields.insert(to, (group, _GROUP_END, b""))
            fields.insert(at, (group, _GROUP_START, b""))
        case _:
            fields[at] = (number, wire_type, _other_value(random, value, depth))


def _other_type(random: Random, value: int | bytes) -> tuple[int, int | bytes]:
    if isinstance(value, int):
        return LENGTH_DELIMITED, varint(value)
    return random.choice(
        (
            (VARINT, len(value)),
            (FIXED64, value[:8].ljust(8, b"\0")),
            (FIXED32, value[:4].ljust(4, b"\0")),
        )
    )


def _other_value(random: Random, value: int | bytes, depth: int) -> int | bytes:
    if isinstance(value, int):
        return random.choice((*NUMBERS, value ^ 1, value + 1 & 2**64 - 1))
    match random.randrange(4):
        case 0:
            return random.choice(TEXTS).encode()
        case 1:
            return changed_bytes(random, value)
        case 2 if depth:
            return changed_protobuf(random, value, depth - 1)
        case _:
            return value + random.choice((b"", b"\0", b"\xff", value, bytes(8)))


def _written(random: Random, number: int, wire_type: int, value: int | bytes) -> bytes:
    """A field on the wire; one in two hundred has a wrong or overlong length."""
    tag = varint(number << 3 | wire_type)
    how = random.choice((_overlong, _longer, _shorter)) if _seldom(random) else varint
    if isinstance(value, int):
        return tag + (varint if how is _longer else how)(value)
    if wire_type != LENGTH_DELIMITED:
        return tag + value
    return tag + how(len(value)) + value


def _seldom(random: Random) -> bool:
    return random.random() < 0.005


def _longer(value: int) -> bytes:
    return varint(value + 2**31)


def _shorter(value: int) -> bytes:
    return varint(max(0, value - 1))


def _overlong(value: int) -> bytes:
    """A varint in ten bytes, which is more than it needs."""
    groups = [value >> 7 * place & 0x7F for place in range(10)]
    return bytes(group | 0x80 for group in groups[:-1]) + bytes([groups[-1]])


def changed_tree(random: Random, tree: Tree) -> Tree:
    """Return a copy of a tree with some nodes replaced, removed, repeated or moved."""
    tree = copy.deepcopy(tree)
    for _ in range(few(random)):
        places = list(_places(tree))
        if not places or random.random() < 0.02:
            return _other_node(random, tree, tree)
        container, key = random.choice(places)
        match random.randrange(6):
            case 0:
                del container[key]
            case 1 if isinstance(container, list):
                copies = random.choice((1, 1, 2, _MOST_COPIES))
                container[key:key] = [copy.deepcopy(container[key])] * copies
            case 1:
                name = random.choice((*TEXTS, str(key).upper(), f"{key}x"))
                container[name] = copy.deepcopy(container[key])
            case 2:
                source, place = random.choice(places)
                container[key] = copy.deepcopy(source[place])
            case _:
                container[key] = _other_node(random, container[key], tree)
    return tree


def _places(tree: Tree) -> Iterable[tuple[Any, Any]]:
    """Every node below the root, as its container and its key or index."""
    if isinstance(tree, dict):
        nodes: Iterable[tuple[Any, Tree]] = tree.items()
    elif isinstance(tree, list):
        nodes = enumerate(tree)
    else:
        return
    for key, node in nodes:
        yield tree, key
        yield from _places(node)


def _other_node(random: Random, node: Tree, tree: Tree) -> Tree:
    match random.randrange(8):
        case 0:
            return [node]
        case 1:
            return {random.choice(TEXTS): node}
        case 2:
            return [copy.deepcopy(node) for _ in range(random.choice((0, 2, 3)))]
        case 3 if isinstance(node, int):
            return node + random.choice((-1, 1, 10**9, -(10**9)))
        case 3 if isinstance(node, str):
            return node + random.choice(TEXTS)
        case 3 if isinstance(node, bytes):
            return changed_bytes(random, node)
        case 4 if isinstance(node, str | bytes) and node:
            return node[: random.randrange(len(node))]
        case _:
            return random.choice(_SCALARS)


def changed_document(
    random: Random,
    value: bytes,
    read: Callable[[bytes], Tree],
    write: Callable[[Tree], bytes],
) -> bytes:
    """Return a document whose tree, or in a fifth of the cases whose bytes, changed.

    Args:
        random: Chooses.
        value: The document; if it cannot be read, its bytes are changed.
        read: Returns its tree; raises ValueError or RecursionError.
        write: The reverse; raises ValueError or TypeError for a tree it cannot write.
    """
    if random.random() < 0.8:
        try:
            return write(changed_tree(random, read(value)))
        except (ValueError, TypeError, OverflowError, RecursionError):
            pass
    return changed_bytes(random, value, value)
