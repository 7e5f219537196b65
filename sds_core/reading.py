"""Converts a mapping, for example from a TOML file, to a msgspec struct.

msgspec checks the values. If a check fails, this module raises an error that contains
the position in the mapping, the value, and the allowed values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from sds_core.text import did_you_mean, shown

T = TypeVar("T")


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of structs for `read`, which refuses a mapping with an unknown key."""


# msgspec 0.18 and later append the path to error messages in this form.
_PATH = re.compile(r" - at `\$\.?([^`]*)`$")
_NAME = re.compile(r"`([^`]*)`$")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(eq=False, repr=False)
class TableError(ValueError):
    """A mapping has an unknown key, lacks a key, or has a value that is not allowed.

    Attributes:
        path: position of the error in the mapping, for example `taps[0].loss`; empty if
            the error concerns the whole mapping.
        problem: text that describes the error, with the value and the allowed values.
    """

    path: str
    problem: str

    def __str__(self) -> str:
        """Return the path and the problem in one line."""
        return f"{self.path or 'the table'} {self.problem}"


def contradiction(rule: str, **values: float) -> ValueError:
    """Return an error for values that break a rule.

    Its text states the rule, and each value with its key.
    """
    texts = (
        f"{key} = {value:g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in values.items()
    )
    return ValueError(f"has {' and '.join(texts)}, but {rule}")


def read(mapping: Mapping[str, Any], into: type[T], within: str = "") -> T:
    """Return `mapping` as a struct of class `into`.

    Args:
        mapping: keys, and values of built-in types.
        into: the struct's class. If its `__post_init__` raises ValueError, the text of
            this error becomes `TableError.problem`. Therefore, the text must contain
            the value and the allowed values.
        within: if the mapping is a part of a larger mapping, its path in the larger
            mapping.

    Raises:
        TableError: unknown or missing key, wrong type, or a value that is not allowed.
    """
    try:
        return msgspec.convert(mapping, into)
    except msgspec.ValidationError as error:
        text = str(error)
        found = _PATH.search(text)
        path = found[1] if found else ""
        steps = [name or int(index) for name, index in _STEP.findall(path)]
        text = text[: found.start()] if found else text
        if error.__cause__ is None:
            text = _problem(text, mapping, into, steps)
        path = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)
        raise TableError((within + path).lstrip("."), text) from None


def _problem(
    text: str, mapping: Mapping[str, Any], into: type[Any], steps: list[str | int]
) -> str:
    value: Any = mapping
    kind = inspect.type_info(into)
    for step in steps:
        value = value[step]
        kind = _inner(kind, step, value)
    if name := _NAME.search(text):
        if "unknown field" in text:
            keys = [one.encode_name for k in _structs(kind) for one in k.fields]
            close = did_you_mean(name[1], keys)
            return (
                f"has no key {shown(name[1])}{close}: "
                f"allowed is {_allowed(kind, value)}"
            )
        if "missing required" in text:
            return f"lacks the key {name[1]!r}"
    close = did_you_mean(value, _choices(kind)) if isinstance(value, str) else ""
    return f"is {shown(value)}{close}: allowed is {_allowed(kind, value)}"


def _inner(kind: inspect.Type, step: str | int, value: Any) -> inspect.Type:
    """Return the type of the entry at `step`, a key or index, in a value of `kind`."""
    for one in _alternatives(kind):
        if isinstance(one, inspect.VarTupleType) and isinstance(step, int):
            return one.item_type
        if isinstance(one, inspect.StructType):
            if one.tag_field == step:
                return inspect.LiteralType(_tags(kind))
            for field in one.fields:
                if field.encode_name == step:
                    return field.type
    return inspect.AnyType()


def _choices(kind: inspect.Type) -> list[str]:
    literals = [k for k in _alternatives(kind) if isinstance(k, inspect.LiteralType)]
    return [str(value) for one in literals for value in one.values]


def _allowed(kind: inspect.Type, value: Any) -> str:
    kinds: Sequence[inspect.Type] = _alternatives(kind)
    if _tags(kind) and isinstance(value, Mapping):
        # If several types of table are possible, the value's tag selects one of them.
        structs = _structs(kind)
        kinds = [one for one in structs if one.tag == value.get(str(one.tag_field))]
    return " or ".join(_words(one) for one in kinds)


def _alternatives(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _structs(kind: inspect.Type) -> list[inspect.StructType]:
    return [one for one in _alternatives(kind) if isinstance(one, inspect.StructType)]


def _tags(kind: inspect.Type) -> tuple[str, ...]:
    return tuple(str(one.tag) for one in _structs(kind) if one.tag is not None)


def _words(kind: inspect.Type) -> str:
    match kind:
        case inspect.StructType():
            keys = [field.encode_name for field in kind.fields]
            tag = [str(kind.tag_field)] if kind.tag_field else []
            return f"a table with {', '.join(sorted(tag + keys))}"
        case inspect.LiteralType():
            return " or ".join(repr(value) for value in kind.values)
        case inspect.EnumType():
            return " or ".join(repr(member.value) for member in kind.cls)
        case inspect.IntType():
            return f"a whole number{_bounds(kind)}"
        case inspect.FloatType():
            return f"a number{_bounds(kind)}"
        case inspect.StrType():
            return "a text" + (f" like {kind.pattern}" if kind.pattern else "")
        case inspect.BoolType():
            return "true or false"
        case inspect.VarTupleType():
            least = f" of at least {kind.min_length}" if kind.min_length else ""
            return f"a list{least}"
        case inspect.DictType():
            return "a table"
        case inspect.NoneType():
            return "nothing"
        case _:
            return "another value"


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    words = {"above": kind.gt, "from": kind.ge, "below": kind.lt, "to": kind.le}
    said = [
        f" {word} {limit:.15g}" for word, limit in words.items() if limit is not None
    ]
    return "".join(said)
