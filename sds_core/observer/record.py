"""Reads records of the frames topic, and their headers (docs/records.md)."""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sds_core.native import Uint64, native, uint64
from sds_core.observer.fingerprint import fingerprint
from sds_core.wire import MAX_ID_CHARACTERS, Reason

NO_SEQ = -1
NO_HASH = 0

MAX_AHEAD_MS = 60_000
"""Maximum difference between a record's time and the moment of its writing, ms.

If a record's time is later than its writing by more than this, the record is a dead
letter.
"""

EARLIEST_MS = 1
"""Earliest event time, Unix ms. An earlier record time counts as this time.

In the state of a view, the time 0 means that something has not happened.
"""

SOURCES = frozenset({b"relay", b"store", b"filter", b"replay", b"simulator"})
_KINDS = frozenset({b"heartbeat"})
_FLAGS = frozenset({b"true", b"false"})
_WAKU_HASH = re.compile(rb"0x[0-9a-fA-F]{64}")
_WAKU_HASH_BYTES = 66
_MAX_SEQ = 2**63 - 1
_MOST_DIGITS = 20

DEFAULT_PROTOCOL = "sds"
"""Protocol of a record without the header ``protocol``."""

Headers = Sequence[tuple[str, bytes | None]]
"""Names and values of a record's headers, in the record's order. If a name is repeated,
its last value counts.

The names are in the form that `header_name` returns.
"""


class RawRecord(NamedTuple):
    """A Kafka record as the Kafka client returns it.

    Attributes:
        timestamp_ms: Record time, Unix ms.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def size_bytes(self) -> int:
        """Total bytes of key, value and headers.

        The number is approximate if the name of a header is not ASCII.
        """
        size = len(self.key or b"") + len(self.value or b"")
        for name, value in self.headers:
            size += len(name) + len(value or b"")
        return size


class Arrival(NamedTuple):
    """Where and when one frame arrived in the frames topic, and from which tap.

    Attributes:
        offset: Offset in the Kafka partition.
        time_ms: Record time, which is the event time, Unix ms; at least `EARLIEST_MS`.
        clock_ms: Maximum record time in the partition up to this record, Unix ms; at
            least `EARLIEST_MS`.
        observer: Tap id; empty if the record names none.
        seq: Sequence number that the tap gave the record; `NO_SEQ` if it gave none.
        waku_hash: Fingerprint of the Waku message hash; `NO_HASH` if the record
            has none.
        waku_hash_bytes: The Waku message hash, 32 bytes; empty if the record has none.
    """

    offset: int
    time_ms: int
    clock_ms: int
    observer: str = ""
    seq: int = NO_SEQ
    waku_hash: int = NO_HASH
    waku_hash_bytes: bytes = b""


class TapHeaders(NamedTuple):
    """The values of a record's headers that the monitor uses.

    For fields that `Arrival` also has, see `Arrival`.
    """

    observer: str = ""
    seq: int = NO_SEQ
    waku_hash: int = NO_HASH
    waku_hash_bytes: bytes = b""
    is_heartbeat: bool = False
    protocol: str = DEFAULT_PROTOCOL


NO_HEADERS = TapHeaders()


class BadHeader(ValueError):
    """A header has a value that docs/records.md does not allow."""

    reason = Reason.BAD_HEADER

    def __init__(self, name: str, value: bytes | None, text: str = "") -> None:
        self.name = name
        self.value = value
        super().__init__(text or f"header {name} is {value!r:.80}")


class BadHeaderName(BadHeader):
    """The name of a header is not UTF-8."""

    def __init__(self, name: str, value: bytes | None) -> None:
        raw = header_name_bytes(name)
        text = f"the name of a header is not UTF-8: {raw!r:.80}"
        super().__init__(name, value, text)


class LongName(BadHeader):
    """The name of a tap or peer in a header is longer than `MAX_ID_CHARACTERS`."""

    reason = Reason.NAME_TOO_LONG

    def __init__(self, name: str, value: bytes, characters: int) -> None:
        text = (
            f"header {name} has {characters} characters, a name has at most "
            f"{MAX_ID_CHARACTERS}: {value!r:.80}"
        )
        super().__init__(name, value, text)


def header_name(raw: bytes) -> str:
    """Return a header's name as text.

    Bytes that are not UTF-8 become lone surrogates (PEP 383). No valid name contains
    lone surrogates.
    """
    return raw.decode(errors="surrogateescape")


def header_name_bytes(name: str) -> bytes:
    """Return the bytes that `header_name` converted to this name."""
    return str.encode(name, errors="surrogateescape")


@native
def is_future(timestamp_ms: int, written_ms: int) -> bool:
    """Whether a record's time is over `MAX_AHEAD_MS` later than its time of writing.

    `sds_core.observer.ahead` finds `written_ms`.
    """
    # The difference may exceed 2**63 ms, so it is stored as an unsigned integer.
    lead_ms: Uint64 = uint64(timestamp_ms - written_ms)
    return timestamp_ms > written_ms and lead_ms > MAX_AHEAD_MS


@native
def read_headers(
    headers: Iterable[tuple[str, bytes | None]],
    protocols: Collection[str] = (DEFAULT_PROTOCOL,),
) -> TapHeaders:
    """Read and check the headers of a record.

    Headers that docs/records.md does not mention are ignored.

    Raises:
        BadHeader: A header has a value that docs/records.md does not allow.
    """
    values = dict(headers)
    if not values:
        return NO_HEADERS
    usual = _usual(values)
    return _checked(values, protocols) if usual is None else usual


@native
def _usual(values: _Values) -> TapHeaders | None:
    """Read headers that have the usual form.

    If the headers have another form, return None. `_checked` then reads the headers.
    """
    get = values.get
    observer, seq, waku_hash = get("observer"), get("seq"), get("waku-hash")
    waku_time = get("waku-timestamp", b"0")
    if (
        not (observer and seq and waku_hash and waku_time)
        or "kind" in values
        or "protocol" in values
        or not (seq.isdigit() and waku_time.isdigit())
        or max(len(seq), len(waku_time)) > _MOST_DIGITS
        or len(observer) > MAX_ID_CHARACTERS
        or int(waku_time) > _MAX_SEQ
        or (number := int(seq)) > _MAX_SEQ
        or len(waku_hash) != _WAKU_HASH_BYTES
        or waku_hash[:2] != b"0x"
        or get("source", b"relay") not in SOURCES
        or get("ephemeral", b"true") not in _FLAGS
        or not "".join(values).isascii()
    ):
        return None
    waku_hash = waku_hash.lower()
    try:
        return tuple.__new__(
            TapHeaders,
            (
                observer.decode(),
                number,
                fingerprint(waku_hash),
                unhexlify(waku_hash[2:]),
                False,
                DEFAULT_PROTOCOL,
            ),
        )
    except ValueError:
        # The observer is not UTF-8, or the hash is not hexadecimal.
        return None


@native
def _checked(values: _Values, protocols: Collection[str]) -> TapHeaders:
    if not "".join(values).isascii():
        _check_names(values)
    observer = read_name("observer", values.get("observer"))
    is_heartbeat = "kind" in values
    if is_heartbeat:
        _one_of(values, "kind", _KINDS)
        if not observer:
            raise BadHeader("observer", values.get("observer"))
    waku_hash = values.get("waku-hash", b"")
    if "waku-hash" in values and not _WAKU_HASH.fullmatch(waku_hash or b""):
        raise BadHeader("waku-hash", waku_hash)
    # Hashes are equal if they differ only in upper and lower case.
    waku_hash = (waku_hash or b"").lower()
    _one_of(values, "source", SOURCES)
    protocol = DEFAULT_PROTOCOL
    if "protocol" in values:
        protocol = _decoded("protocol", values["protocol"])
        if protocol not in protocols:
            raise BadHeader("protocol", values["protocol"])
    _one_of(values, "ephemeral", _FLAGS)
    _number(values, "waku-timestamp")
    return TapHeaders(
        observer,
        _number(values, "seq"),
        fingerprint(waku_hash) if waku_hash else NO_HASH,
        unhexlify(waku_hash[2:]),
        is_heartbeat,
        protocol,
    )


def read_tap(headers: Iterable[tuple[str, bytes | None]]) -> TapHeaders:
    """Read tap and sequence number of a record that has an invalid header.

    The record did arrive, so its sequence number must not count as missing. If the tap
    or the sequence number is invalid, return `NO_HEADERS`.
    """
    values = dict(headers)
    try:
        observer = read_name("observer", values.get("observer"))
        return TapHeaders(observer, _number(values, "seq"))
    except BadHeader:
        return NO_HEADERS


@native
def read_name(header: str, value: bytes | None) -> str:
    """Read a header that names a tap or peer; if the header is absent, return "".

    Raises:
        BadHeader: The header's value is not UTF-8, or has more than
            `MAX_ID_CHARACTERS` characters.
    """
    name = _decoded(header, value)
    if len(name) > MAX_ID_CHARACTERS:
        raise LongName(header, value or b"", len(name))
    return name


_Values = dict[str, bytes | None]


def _check_names(values: _Values) -> None:
    for name, value in values.items():
        try:
            header_name_bytes(name).decode()
        except UnicodeDecodeError:
            raise BadHeaderName(name, value) from None


@native
def _decoded(name: str, value: bytes | None) -> str:
    try:
        return (value or b"").decode()
    except UnicodeDecodeError:
        raise BadHeader(name, value) from None


@native
def _number(values: _Values, name: str) -> int:
    """The decimal number in a header; `NO_SEQ` if the header is absent."""
    if name not in values:
        return NO_SEQ
    value = values[name] or b""
    if not value.isdigit() or len(value) > _MOST_DIGITS or int(value) > _MAX_SEQ:
        raise BadHeader(name, value)
    return int(value)


@native
def _one_of(values: _Values, name: str, allowed: frozenset[bytes]) -> None:
    if name in values and values[name] not in allowed:
        raise BadHeader(name, values[name])
