"""Divides a JSON list into its elements, without parsing them.

The list is untrusted and may be large. Regular expressions and `msgspec` run as C code,
which holds Python's lock (GIL) and so blocks other threads. If one call read 64 MB, the
server could not answer probes and scrapes for seconds. The list is therefore searched
in small steps, and elements longer than `MAX_ELEMENT_BYTES` are not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_ELEMENTS = 100_000
"""Maximum number of messages in a list.

A cache holds some thousands of messages, and a store page holds 100.
"""

MAX_ELEMENT_BYTES = 8 * 1024 * 1024
"""Maximum length of one message in JSON, bytes.

The longest frame that can be decoded has 4 MiB, and its base64 text is shorter than
this limit. Relays transmit at most 150 KiB.
"""

MAX_MARKS = 50 * MAX_ELEMENTS
"""Maximum number of quotes, commas, brackets and escapes in a list. One message has
about 30."""

_STEP_BYTES = 64 * 1024
_SHOWN_BYTES = 200

_MARK = re.compile(rb'["\\\[\]{},]')
_QUOTE, _ESCAPE, _COMMA, _END = b'"\\,]'
_OPENING = b"[{"
_CLOSING = b"]}"


def elements(body: bytes) -> Iterator[bytes]:
    """Yield the elements of a JSON list as raw bytes, which may be invalid JSON.

    Raises:
        ValueError: The bytes are not a list, the list is incomplete, or it exceeds
            `MAX_ELEMENTS` or `MAX_MARKS`. Elements that are complete before the error
            are yielded first.
    """
    count = depth = begin = 0
    in_string = False
    escaped = -1
    for at in _marks(body):
        mark = body[at]
        if in_string:
            if at == escaped:
                continue
            if mark == _ESCAPE:
                escaped = at + 1
            elif mark == _QUOTE:
                in_string = False
            continue
        if depth == 0 and (mark not in b"[" or body[:at].strip()):
            break
        if mark == _QUOTE:
            in_string = True
        elif mark in _OPENING:
            depth += 1
            if depth == 1:
                begin = at + 1
        elif mark != _ESCAPE:
            if depth == 1 and mark in (_COMMA, _END):
                if element := body[begin:at].strip():
                    count += 1
                    if count > MAX_ELEMENTS:
                        message = f"the list has more than {MAX_ELEMENTS} elements"
                        raise ValueError(message)
                    yield element
                begin = at + 1
            if mark in _CLOSING:
                depth -= 1
                if depth == 0:
                    if mark == _END and not body[at + 1 :].strip():
                        return
                    break
    if not begin:
        message = f"the answer is not a list but {body[:_SHOWN_BYTES]!r:.80}"
        raise ValueError(message)
    raise ValueError("the list is not closed, or more text follows it")


def check_length(element: bytes) -> bytes:
    """Return an element; raise ValueError if it exceeds `MAX_ELEMENT_BYTES`."""
    if len(element) > MAX_ELEMENT_BYTES:
        message = (
            f"an element has {len(element)} bytes, but at most {MAX_ELEMENT_BYTES} are "
            "allowed"
        )
        raise ValueError(message)
    return element


def _marks(body: bytes) -> Iterator[int]:
    """Yield the positions of all characters that may be part of JSON's syntax."""
    left = MAX_MARKS
    for start in range(0, len(body), _STEP_BYTES):
        for found in _MARK.finditer(body, start, start + _STEP_BYTES):
            if not left:
                message = (
                    f"the list has more than {MAX_MARKS} quotes, commas and brackets"
                )
                raise ValueError(message)
            left -= 1
            yield found.start()
